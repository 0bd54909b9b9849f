//! `everturn show`: shows how a turn spent its time.
//!
//! `everturn_client::state::turn_rows` computes the turn's rows and their times, as in every client.
//!
//! - `draw`: draws rows as lines of a terminal. Pure.

mod draw;

use std::{
    io::{self, Write},
    pin::pin,
    process::ExitCode,
};

use anyhow::{Context, bail};
use chrono::Utc;
use everturn_client::{
    GatewayClient,
    state::{Conversation, TurnRows, turn_rows},
};
use everturn_supervisor::shutdown;
use futures::StreamExt;

use crate::{options::ShowOptions, show};

/// The width without a terminal.
const WIDTH: u16 = 110;

/// Prints the requested turns.
pub async fn run(options: ShowOptions) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let client = options.gateway.client()?;
    let read = read(&client, &options.conversation, options.events);
    let conversation = tokio::select! {
        conversation = read => conversation?,
        () = shutdown.cancelled() => return Ok(ExitCode::FAILURE),
    };
    let turns = turn_rows(conversation.items(), conversation.turn());
    let shown: Vec<&TurnRows> = match &options.turn {
        _ if options.all => turns.iter().collect(),
        Some(message_id) => turns.iter().filter(|it| it.id == *message_id).collect(),
        None => turns.last().into_iter().collect(),
    };
    if shown.is_empty() {
        bail!(
            "the turn is not among the newest {} events of the conversation; raise --events",
            options.events
        );
    }
    let terminal = terminal_size::terminal_size().map(|(width, _)| width.0);
    let width = options.width.or(terminal).unwrap_or(WIDTH);
    let now = Utc::now().timestamp_millis();
    let drawn = shown.iter().map(|turn| draw::turn(turn, now, width.into()));
    let text = drawn.collect::<Vec<_>>().join("\n");
    show::is_closed(write!(io::stdout(), "{text}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the newest events.
async fn read(client: &GatewayClient, id: &str, events: u32) -> anyhow::Result<Conversation> {
    let last = client.last_sequence(id).await?;
    let from = last.saturating_sub(events);
    let mut conversation = Conversation::behind(&from.to_string());
    let mut frames = pin!(client.follow(id, from));
    while conversation.last_sequence() < last.into() {
        let frame = frames.next().await;
        let frame = frame.context("the gateway ended the stream before its last event")?;
        conversation.apply(frame.cursor.as_deref(), frame.data);
    }
    Ok(conversation)
}
