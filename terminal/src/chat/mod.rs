//! `everturn chat`: a conversation on the terminal or in a pipe.
//!
//! - `session`: the state of the conversation, and the requests to the gateway; draws nothing
//! - `setup`: the fixed settings of a chat, and its exit codes
//! - `view`: the state as rows; no I/O
//! - `talk`, `screen`, `editor`, `keys`: the terminal
//! - `edited`: objects that the user wrote: inputs in place of the model's, and fields of forms
//! - `reached`: requests that are sent until a gateway responds
//! - `plain`: pipes, and terminals that can only print
//! - `tools`: client tools of the user

mod edited;
mod editor;
mod keys;
mod plain;
mod questions;
mod reached;
mod screen;
mod session;
mod setup;
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

use self::{session::Session, setup::Setup, tools::Offered, view::Look};
use crate::options::ChatOptions;

/// The number of newest events shown for a continued conversation.
const HISTORY: u32 = 200;

/// Runs the chat until the user leaves, the input ends, or the single turn has ended. The history of typed lines is a
/// file in `data_dir`.
pub async fn run(options: ChatOptions, data_dir: &Path) -> anyhow::Result<ExitCode> {
    let client = options.gateway.client()?.choosing_model(options.model);
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
