//! The wires that the model speaks: how a reply is written on each, and what a request says.

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderValue},
};
use everturn_models::refused::Who;
use serde_json::{Value, json};

use super::{CallUsage, Reply, USAGE};

/// The form of requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI's chat completions, also at Azure.
    OpenAi,
    /// OpenAI's Responses API. A response is only in its first stream: nobody can read it again.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini,
}

impl Wire {
    /// The wires with streamed replies.
    pub const CHAT: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// The kind of its providers in everturn.toml.
    pub fn kind(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The providers that must take each of its requests. A request to OpenAI's own service is one with Azure's header.
    pub(super) fn whose(self, headers: &HeaderMap) -> &'static [Who] {
        match self {
            Self::OpenAi if headers.contains_key("api-key") => &[Who::OpenAi],
            Self::OpenAi => &[Who::OpenAi, Who::Template],
            Self::Responses => &[Who::Responses],
            Self::Anthropic => &[Who::Anthropic],
            Self::Gemini => &[Who::Gemini],
        }
    }

    /// The path of its API.
    pub(super) fn base_path(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses | Self::Anthropic => "/v1/",
            Self::Gemini => "/v1beta/",
        }
    }

    /// Stands before the text of a reply.
    pub(super) fn begin(self, reply: &Reply) -> Vec<Bytes> {
        match self {
            Self::OpenAi | Self::Gemini => Vec::new(),
            Self::Responses => vec![named(&json!({
                "type": "response.created", "response": {"id": "resp_1", "status": "in_progress"},
            }))],
            Self::Anthropic => {
                let took = reply.usage.unwrap_or(USAGE);
                let usage = json!({
                    "input_tokens": took.input_tokens - took.cached_tokens,
                    "cache_read_input_tokens": took.cached_tokens,
                    "output_tokens": 1,
                });
                let message =
                    json!({"id": "msg_1", "role": "assistant", "content": [], "usage": usage});
                let mut events = vec![json!({"type": "message_start", "message": message})];
                if !reply.pieces.is_empty() {
                    events.push(block(0, &json!({"type": "text", "text": ""})));
                }
                events.iter().map(named).collect()
            }
        }
    }

    /// A piece of the text.
    pub(super) fn text(self, piece: &str) -> Bytes {
        match self {
            Self::OpenAi => delta(&json!({"role": "assistant", "content": piece}), None),
            Self::Responses => named(&json!({
                "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": piece,
            })),
            Self::Anthropic => named(&json!({
                "type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece},
            })),
            Self::Gemini => candidate(&json!([{"text": piece}]), None),
        }
    }

    /// An event that stands as it is, whether it is JSON or not.
    pub(super) fn raw(self, data: &str) -> Bytes {
        let is_error = serde_json::from_str(data).is_ok_and(|data: Value| data["type"] == "error");
        let name = match self {
            Self::OpenAi | Self::Gemini => String::new(),
            Self::Anthropic if is_error => "event: error\n".to_owned(),
            Self::Anthropic => "event: content_block_delta\n".to_owned(),
            Self::Responses => "event: response.output_text.delta\n".to_owned(),
        };
        Bytes::from(format!("{name}data: {data}\n\n"))
    }

    /// The calls of a reply, and its end.
    pub(super) fn end(self, reply: &Reply) -> Vec<Bytes> {
        match self {
            Self::OpenAi => openai_end(reply),
            Self::Responses => vec![responses_end(reply)],
            Self::Anthropic => anthropic_end(reply),
            Self::Gemini => gemini_end(reply),
        }
    }

    /// The body of an answer with this status, which is an error.
    pub(super) fn error(self, status: u16, message: &str, code: &str) -> Value {
        match self {
            Self::OpenAi | Self::Responses => {
                json!({"error": {"message": message, "type": code, "code": code}})
            }
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": code, "message": message}})
            }
            Self::Gemini => json!({"error": {"code": status, "message": message, "status": code}}),
        }
    }
}

/// The key of a request, from the header that its provider has it in.
pub(super) fn key(headers: &HeaderMap) -> String {
    let names = ["authorization", "api-key", "x-api-key", "x-goog-api-key"];
    let key = names.iter().find_map(|name| headers.get(*name));
    let key = String::from_utf8_lossy(key.map(HeaderValue::as_bytes).unwrap_or_default());
    key.trim_start_matches("Bearer ").to_owned()
}

fn openai_end(reply: &Reply) -> Vec<Bytes> {
    let mut end = Vec::new();
    for (index, (id, name, arguments)) in reply.calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": arguments});
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        end.push(delta(&json!({"tool_calls": [call]}), None));
    }
    let finish = finish(reply, "length", "stop", "tool_calls");
    end.push(delta(&json!({}), Some(finish)));
    let took = reply.usage.unwrap_or(USAGE);
    let usage = json!({
        "prompt_tokens": took.input_tokens,
        "completion_tokens": took.output_tokens,
        "total_tokens": took.input_tokens + took.output_tokens,
        "prompt_tokens_details": {"cached_tokens": took.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": took.reasoning_tokens},
    });
    end.push(frame(
        &json!({"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": usage}),
    ));
    end.push(Bytes::from_static(b"data: [DONE]\n\n"));
    end
}

fn responses_end(reply: &Reply) -> Bytes {
    let text = json!([{"type": "output_text", "text": reply.whole_text()}]);
    let mut output =
        vec![json!({"type": "message", "id": "msg_1", "role": "assistant", "content": text})];
    output.extend(reply.calls.iter().map(|(id, name, arguments)| {
        json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
    }));
    let took = reply.usage.unwrap_or(USAGE);
    let usage = json!({
        "input_tokens": took.input_tokens,
        "input_tokens_details": {"cached_tokens": took.cached_tokens},
        "output_tokens": took.output_tokens,
        "output_tokens_details": {"reasoning_tokens": took.reasoning_tokens},
    });
    let response = json!({"id": "resp_1", "status": "completed", "output": output, "usage": usage});
    named(&json!({"type": "response.completed", "response": response}))
}

fn anthropic_end(reply: &Reply) -> Vec<Bytes> {
    let stop = |index: usize| json!({"type": "content_block_stop", "index": index});
    let has_text = !reply.pieces.is_empty();
    let mut events: Vec<_> = has_text.then(|| stop(0)).into_iter().collect();
    for (number, (id, name, arguments)) in reply.calls.iter().enumerate() {
        let index = number + usize::from(has_text);
        let call = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": arguments});
        events.push(block(index, &call));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(stop(index));
    }
    let reason = finish(reply, "max_tokens", "end_turn", "tool_use");
    let CallUsage {
        output_tokens,
        reasoning_tokens,
        ..
    } = reply.usage.unwrap_or(USAGE);
    let usage = json!({
        "output_tokens": output_tokens,
        "output_tokens_details": {"thinking_tokens": reasoning_tokens},
    });
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(named).collect()
}

fn gemini_end(reply: &Reply) -> Vec<Bytes> {
    let parts = reply.calls.iter().map(|(_, name, arguments)| {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        json!({"functionCall": {"name": name, "args": arguments}})
    });
    let parts: Vec<_> = parts.collect();
    let took = reply.usage.unwrap_or(USAGE);
    let usage = json!({
        "promptTokenCount": took.input_tokens,
        "cachedContentTokenCount": took.cached_tokens,
        "candidatesTokenCount": took.output_tokens - took.reasoning_tokens,
        "thoughtsTokenCount": took.reasoning_tokens,
        "totalTokenCount": took.input_tokens + took.output_tokens,
    });
    let finish = finish(reply, "MAX_TOKENS", "STOP", "STOP");
    vec![candidate(&json!(parts), Some((finish, &usage)))]
}

/// How a reply says that it ends: at the limit of tokens, with its text, or with calls.
fn finish<'a>(reply: &Reply, at_limit: &'a str, stop: &'a str, calls: &'a str) -> &'a str {
    match () {
        () if reply.is_at_limit => at_limit,
        () if reply.calls.is_empty() => stop,
        () => calls,
    }
}

fn delta(delta: &Value, finish: Option<&str>) -> Bytes {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    frame(
        &json!({"id": "x", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]}),
    )
}

fn block(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn candidate(parts: &Value, end: Option<(&str, &Value)>) -> Bytes {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut whole = json!({});
    if let Some((finish, usage)) = end {
        candidate["finishReason"] = json!(finish);
        whole["usageMetadata"] = usage.clone();
    }
    whole["candidates"] = json!([candidate]);
    frame(&whole)
}

fn named(event: &Value) -> Bytes {
    let name = event["type"].as_str().unwrap();
    Bytes::from(format!("event: {name}\ndata: {event}\n\n"))
}

fn frame(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}
