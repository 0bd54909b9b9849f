//! Anthropic's wire: replies as providers and proxies send them, and the requests that follow.

mod properties;
mod replies;
mod requests;

use serde_json::{Value, json};

use crate::{
    provider::ProviderKind,
    wire::tests::{Heard, heard},
};

const PARIS: &str = r#"{"city":"Paris"}"#;
const ROME: &str = r#"{"city":"Rome"}"#;

/// The reply of a stream with these events.
fn hear(events: &[Value]) -> Heard {
    let written = events.iter().map(|event| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    });
    let stream = written.collect::<Vec<_>>().concat();
    heard(ProviderKind::Anthropic, &[stream.as_bytes()])
}

/// The reply of a stream with these blocks, and this end.
fn hear_blocks(blocks: &[Vec<Value>], stop: &str) -> Heard {
    let events = [vec![start()], blocks.concat(), end(stop)];
    hear(&events.concat())
}

fn start() -> Value {
    json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m",
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 11, "output_tokens": 1},
    }})
}

fn end(stop: &str) -> Vec<Value> {
    vec![
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": 5},
        }),
        json!({"type": "message_stop"}),
    ]
}

fn block(index: usize, block: &Value, deltas: Vec<Value>) -> Vec<Value> {
    let mut events =
        vec![json!({"type": "content_block_start", "index": index, "content_block": block})];
    events.extend(
        deltas
            .into_iter()
            .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
    );
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

fn text(index: usize, pieces: &[&str]) -> Vec<Value> {
    let delta = |text: &&str| json!({"type": "text_delta", "text": text});
    let deltas = pieces.iter().map(delta).collect();
    block(index, &json!({"type": "text", "text": ""}), deltas)
}

fn thinking(index: usize, text: &str, signature: &str) -> Vec<Value> {
    let mut deltas = vec![json!({"type": "thinking_delta", "thinking": text})];
    if !signature.is_empty() {
        deltas.push(json!({"type": "signature_delta", "signature": signature}));
    }
    let empty = json!({"type": "thinking", "thinking": "", "signature": ""});
    block(index, &empty, deltas)
}

fn redacted(index: usize, data: &str) -> Vec<Value> {
    let whole = json!({"type": "redacted_thinking", "data": data});
    block(index, &whole, Vec::new())
}

fn tool(index: usize, id: &str, pieces: &[&str]) -> Vec<Value> {
    tool_with(index, id, &json!({}), pieces)
}

/// A call with arguments at its beginning.
fn tool_with(index: usize, id: &str, input: &Value, pieces: &[&str]) -> Vec<Value> {
    let delta = |piece: &&str| json!({"type": "input_json_delta", "partial_json": piece});
    let deltas = pieces.iter().map(delta).collect();
    let empty = json!({"type": "tool_use", "id": id, "name": "weather", "input": input});
    block(index, &empty, deltas)
}

/// A tool that the provider runs itself, and its result.
fn server_tool(index: usize) -> Vec<Value> {
    let call = json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}});
    let piece = json!({"type": "input_json_delta", "partial_json": r#"{"query":"x"}"#});
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []});
    [
        block(index, &call, vec![piece]),
        block(index + 1, &result, Vec::new()),
    ]
    .concat()
}
