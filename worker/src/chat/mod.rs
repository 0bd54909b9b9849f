//! `everturn chat`: a conversation in the terminal, or in a pipe.
//!
//! - `session`: what happens in the conversation, and what is sent; draws nothing
//! - `view`: the state as rows; no I/O
//! - `talk`, `screen`, `editor`, `keys`: the terminal
//! - `plain`: pipes, and terminals that can do nothing but print
//! - `tools`: client tools that the user offers

mod editor;
mod keys;
mod plain;
mod questions;
mod screen;
mod session;
mod talk;
#[cfg(test)]
mod tests;
mod tools;
mod view;

use std::{
    env,
    io::{self, IsTerminal},
    process::ExitCode,
};

use everturn_client::state::EndKind;

pub use self::tools::Offered;
use self::{session::Session, view::Look};
use crate::cli::{ChatOptions, Common};

/// How many of the newest events are shown of a conversation that goes on.
const HISTORY: u32 = 200;

/// The exit code of a turn that was cancelled.
const CANCELLED: u8 = 3;

/// The exit code after a second Ctrl-C.
const INTERRUPTED: u8 = 130;

/// What does not change while it runs.
#[derive(Debug, Clone)]
struct Setup {
    /// The message of `everturn chat "message"`: one turn, and the end.
    message: Option<String>,
    /// Every approval is given.
    approves_all: bool,
    /// Offered tools run without a question.
    runs_tools: bool,
    look: Look,
}

/// Talks until the user leaves, the input ends, or the one turn has ended.
pub async fn run(common: &Common, options: ChatOptions) -> anyhow::Result<ExitCode> {
    let client = options.gateway.client()?;
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let is_dumb = env::var("TERM").is_ok_and(|term| term == "dumb");
    let is_live = is_terminal && !is_dumb && !options.json;
    let (conversation_id, last) = match options.conversation {
        Some(id) => {
            let last = client.last_sequence(&id).await?;
            (id, last)
        }
        None => (
            client.create_conversation(options.agent.as_deref()).await?,
            0,
        ),
    };
    let shows_history = is_live && options.message.is_none();
    let history = options
        .history
        .unwrap_or(if shows_history { HISTORY } else { 0 });
    let from = last.saturating_sub(history);
    let limit = options.tool_timeout;
    let offered = options
        .tools
        .into_iter()
        .map(|tool| Offered { limit, ..tool });
    let session = Session::new(client, conversation_id, from, last, offered.collect());
    let setup = Setup {
        message: options.message,
        approves_all: options.approve,
        runs_tools: options.yes_tools,
        look: Look {
            width: usize::MAX,
            has_markdown: is_live,
            is_live,
            gateway: options.gateway.url.trim_end_matches('/').to_owned(),
        },
    };
    let code = if is_live {
        talk::run(session, setup, common.data_dir().join("chat_history")).await?
    } else {
        plain::run(session, setup, options.json, history > 0).await?
    };
    Ok(ExitCode::from(code))
}

/// The exit code after a turn.
fn code_of(outcome: EndKind) -> u8 {
    match outcome {
        EndKind::Complete => 0,
        EndKind::Error => 1,
        EndKind::Cancelled => CANCELLED,
    }
}
