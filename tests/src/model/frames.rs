//! The frames of a reply, as an OpenAI-compatible server streams them.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use axum::body::Bytes;
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{PACE, Piece, Reply, USAGE};
use crate::crowd::stamp;

pub(super) fn frames(
    reply: Reply,
    mut released: watch::Receiver<bool>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let (is_held, pace) = (reply.is_held, reply.pace.unwrap_or(PACE));
    let wait = stream::once(async move {
        if is_held {
            let _ = released.wait_for(|released| *released).await;
        }
        None
    });
    let mut rest = Vec::new();
    if let Some(data) = &reply.event {
        rest.push(Bytes::from(format!("data: {data}\n\n")));
    }
    if !reply.is_cut {
        for (index, (id, name, arguments)) in reply.calls.iter().enumerate() {
            let function = json!({"name": name, "arguments": arguments});
            let call = json!({"index": index, "id": id, "type": "function", "function": function});
            rest.push(delta(&json!({"tool_calls": [call]}), None));
        }
        let finish = match () {
            () if reply.is_at_limit => "length",
            () if reply.calls.is_empty() => "stop",
            () => "tool_calls",
        };
        rest.push(delta(&json!({}), Some(finish)));
        let took = reply.usage.unwrap_or(USAGE);
        let usage = json!({
            "prompt_tokens": took.input_tokens,
            "completion_tokens": took.output_tokens,
            "total_tokens": took.input_tokens + took.output_tokens,
            "prompt_tokens_details": {"cached_tokens": took.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": took.reasoning_tokens},
        });
        rest.push(frame(
            &json!({"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": usage}),
        ));
        rest.push(Bytes::from_static(b"data: [DONE]\n\n"));
    }
    let (begun, count) = (Instant::now(), reply.pieces.len());
    let over = reply.over;
    let pieces = stream::iter(reply.pieces).enumerate();
    let text = pieces.then(move |(index, piece)| async move {
        if let Some(over) = over {
            let due = begun + due(over, index + 1, count);
            tokio::time::sleep_until(due.into()).await;
        } else if !pace.is_zero() {
            tokio::time::sleep(pace).await;
        }
        let piece = match piece {
            Piece::Text(text) => text,
            Piece::Stamp => stamp(0),
        };
        Some(delta(&json!({"role": "assistant", "content": piece}), None))
    });
    text.chain(wait)
        .chain(stream::iter(rest.into_iter().map(Some)))
        .filter_map(|piece| async { piece.map(Ok) })
}

/// When this one of `count` pieces is sent that are spread over a time.
fn due(over: Duration, number: usize, count: usize) -> Duration {
    let share = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
    over * share(number) / share(count)
}

fn delta(delta: &Value, finish: Option<&str>) -> Bytes {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    frame(
        &json!({"id": "x", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]}),
    )
}

fn frame(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}
