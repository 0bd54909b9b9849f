//! `everturn chat`: a conversation on the terminal or in a pipe.
//!
//! - `session`: the state of the conversation, and the requests to the gateway; draws nothing
//! - `view`: the state as rows; no I/O
//! - `talk`, `screen`, `editor`, `keys`: the terminal
//! - `plain`: pipes, and terminals that can only print
//! - `tools`: client tools of the user

mod editor;
mod keys;
mod plain;
mod questions;
mod screen;
mod session;
mod talk;
#[cfg(test)]
mod tests;
pub mod tools;
mod view;

use std::{
    env,
    io::{self, IsTerminal},
    path::Path,
    process::ExitCode,
};

use everturn_client::state::EndKind;

use self::{session::Session, tools::Offered, view::Look};
use crate::options::ChatOptions;

/// The number of newest events shown for a continued conversation.
const HISTORY: u32 = 200;

/// The exit code of a cancelled turn.
const CANCELLED: u8 = 3;

/// The exit code after a second Ctrl-C.
const INTERRUPTED: u8 = 130;

/// The fixed settings of a chat.
#[derive(Debug, Clone)]
struct Setup {
    /// The message of `everturn chat "message"`: the chat ends after its turn.
    message: Option<String>,
    /// True when the chat approves every call.
    approves_all: bool,
    /// True when the user's tools run without a question.
    runs_tools: bool,
    look: Look,
}

/// Runs the chat until the user leaves, the input ends, or the single turn has ended. The history of typed lines is a
/// file in `data_dir`.
pub async fn run(options: ChatOptions, data_dir: &Path) -> anyhow::Result<ExitCode> {
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
        talk::run(session, setup, data_dir.join("chat_history")).await?
    } else {
        plain::run(session, setup, options.json, history > 0).await?
    };
    Ok(ExitCode::from(code))
}

/// Returns the exit code after a turn.
fn code_of(outcome: EndKind) -> u8 {
    match outcome {
        EndKind::Complete => 0,
        EndKind::Error => 1,
        EndKind::Cancelled => CANCELLED,
    }
}
