//! `everturn chat`: a conversation in the terminal.

mod approval;
mod printer;

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use everturn_proto::words::EventType;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use self::{approval::Input, printer::Printer};
use everturn_client::GatewayClient;

use crate::{cli::ChatOptions, frames::KnownFrame, shutdown};

/// Sends messages and prints answers until the input ends; Ctrl-C cancels the running turn, or leaves.
pub async fn run(options: ChatOptions) -> anyhow::Result<ExitCode> {
    let client = GatewayClient::with_token(&options.url, options.token.as_deref())?;
    let conversation_id = match options.conversation {
        Some(id) => id,
        None => client.create_conversation(options.agent.as_deref()).await?,
    };
    let shutdown = shutdown::token()?;
    let mut input = Input::new(options.approve);
    if let Some(message) = options.message {
        let is_complete = turn(&client, &conversation_id, &message, &mut input, &shutdown).await?;
        return Ok(if is_complete {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    println!(
        "conversation {conversation_id} · Ctrl-D leaves, Ctrl-C cancels the running turn and leaves; go on with --conversation {conversation_id}"
    );
    loop {
        prompt();
        let line = tokio::select! {
            line = input.lines.next_line() => line?,
            () = shutdown.cancelled() => None,
        };
        let Some(line) = line else {
            return Ok(ExitCode::SUCCESS);
        };
        if line.trim().is_empty() {
            continue;
        }
        turn(&client, &conversation_id, &line, &mut input, &shutdown).await?;
        if shutdown.is_cancelled() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn prompt() {
    if std::io::stdin().is_terminal() {
        print!("\nyou> ");
        let _unseen = std::io::stdout().flush();
    }
}

/// One message and its answer. True when the turn completed.
async fn turn(
    client: &GatewayClient,
    conversation_id: &str,
    message: &str,
    input: &mut Input,
    shutdown: &CancellationToken,
) -> anyhow::Result<bool> {
    let cursor = client.last_sequence(conversation_id).await?;
    let message_id = client.submit(conversation_id, message, None).await?;
    let mut frames = std::pin::pin!(client.follow(conversation_id, cursor));
    let mut printer = Printer::default();
    let mut is_cancelling = false;
    // One turn runs at a time. Frames between the first event of our turn and its last one belong to it. Earlier ones
    // belong to turns of other devices.
    let mut is_ours = false;
    loop {
        let frame = tokio::select! {
            frame = frames.next() => frame,
            () = shutdown.cancelled(), if !is_cancelling => {
                is_cancelling = true;
                client.cancel(conversation_id).await?;
                continue;
            }
        };
        let Some(frame) = frame else { return Ok(false) };
        is_ours |= frame.data["message_id"] == message_id.as_str();
        if !is_ours {
            continue;
        }
        let is_own = frame.is_own(conversation_id, &message_id);
        printer.print(&frame, is_own);
        let event_type = frame.event_type();
        if event_type == EventType::ApprovalRequested && !is_cancelling {
            let answer = tokio::select! {
                answer = input.decide(&frame.data) => answer?,
                // The loop sends the cancel next, which ends the waiting calls.
                () = shutdown.cancelled() => continue,
            };
            let execution_id = frame.data["execution_id"].as_str().unwrap_or_default();
            // Another device may have answered first. The turn goes on in both cases.
            if let Err(error) = client
                .resolve_approval(conversation_id, execution_id, &answer)
                .await
            {
                println!("{error:#}");
            }
        }
        if frame.ends_turn(conversation_id, &message_id) {
            println!();
            return Ok(event_type == EventType::Complete);
        }
    }
}
