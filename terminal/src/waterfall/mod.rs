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
use chrono::{DateTime, Utc};
use everturn_client::{
    GatewayClient,
    state::{Conversation, ModelWait, TurnRows, turn_rows},
};
use everturn_supervisor::shutdown;
use futures::StreamExt;
use serde_json::Value;

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
    let mut text = drawn.collect::<Vec<_>>().join("\n");
    let running = conversation.turn();
    if shown.iter().any(|turn| running == Some(turn.id.as_str())) {
        let status = client.execution_status(&options.conversation).await?;
        text.extend(waiting(&status["waiting"], now).map(|sentence| format!("{sentence}\n")));
    }
    show::is_closed(write!(io::stdout(), "{text}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a sentence about the call that waits for its provider; `None` if no call waits. `now` is in milliseconds since
/// 1970.
fn waiting(waiting: &Value, now: i64) -> Option<String> {
    let text = |name: &str| waiting[name].as_str().unwrap_or_default().to_owned();
    let next = DateTime::parse_from_rfc3339(&text("next_try_at")).ok()?;
    let pause = next.timestamp_millis().saturating_sub(now);
    let wait = ModelWait {
        agent_execution_id: text("agent_execution_id"),
        step: waiting["step"].as_u64()?,
        code: text("code"),
        message: String::new(),
        attempt: waiting["attempt"].as_u64()?,
        retry_after_ms: u64::try_from(pause).unwrap_or_default(),
        message_id: String::new(),
    };
    Some(wait.sentence(0))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_waits_has_a_sentence() {
        let status = json!({"agent_execution_id": "run_1", "step": 0, "code": "llm_overloaded", "attempt": 4,
                            "next_try_at": "1970-01-01T00:00:09.000Z"});
        assert_eq!(
            waiting(&status, 2000).unwrap(),
            "The provider is overloaded; next try in 7 s (attempt 4)"
        );
        assert_eq!(waiting(&Value::Null, 0), None);
    }
}
