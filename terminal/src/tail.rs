//! `everturn tail`: prints the events of a conversation as lines, live.

use std::{
    io::{Write, stdout},
    pin::pin,
    process::ExitCode,
};

use anyhow::bail;
use everturn_client::Frame;
use everturn_supervisor::shutdown;
use futures::StreamExt;

use crate::{options::TailOptions, show};

/// Prints the newest events, and then new events until a stop signal.
pub async fn run(options: TailOptions) -> anyhow::Result<ExitCode> {
    let client = options.gateway.client()?;
    let last = client.last_sequence(&options.conversation).await?;
    let from = last.saturating_sub(options.lines);
    let shutdown = shutdown::token()?;
    let mut frames = pin!(client.follow(&options.conversation, from));
    let mut shown = from;
    while !(options.no_follow && shown >= last) {
        let frame = tokio::select! {
            frame = frames.next() => frame,
            () = shutdown.cancelled() => return Ok(ExitCode::SUCCESS),
        };
        let Some(frame) = frame else {
            bail!(
                "nothing more comes: the conversation was deleted, or the key or token is not valid any more"
            );
        };
        if let Some(line) = line(&frame, options.json)
            && show::is_closed(writeln!(stdout(), "{line}"))?
        {
            break;
        }
        shown = frame.id.unwrap_or(shown);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the line of an event, or of `reset`, after which the events come again.
fn line(frame: &Frame, is_json: bool) -> Option<String> {
    let is_reset = frame.event == "reset";
    if is_json {
        let is_shown = is_reset || frame.id.is_some();
        return is_shown.then(|| frame.data.to_string());
    }
    if is_reset {
        let from = &frame.data["from_sequence"];
        return Some(format!(
            "the database has lost events: discard the events from {from} on"
        ));
    }
    show::line(frame)
}
