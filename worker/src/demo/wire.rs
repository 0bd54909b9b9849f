//! OpenAI's chat completions, as far as the demo model needs them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// A request. What is missing or of another shape counts as absent where that makes sense.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Request {
    #[serde(default)]
    pub(super) model: String,
    pub(super) messages: Vec<Message>,
    #[serde(default)]
    pub(super) tools: Vec<ToolDefinition>,
    #[serde(default)]
    pub(super) stream: bool,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Message {
    pub(super) role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    pub(super) tool_calls: Vec<AskedCall>,
    #[serde(default)]
    pub(super) tool_call_id: String,
}

/// A call that an assistant message made.
#[derive(Debug, Deserialize)]
pub(super) struct AskedCall {
    #[serde(default)]
    pub(super) id: String,
    pub(super) function: AskedFunction,
}

#[derive(Debug, Deserialize)]
pub(super) struct AskedFunction {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolDefinition {
    pub(super) function: NamedFunction,
}

#[derive(Debug, Deserialize)]
pub(super) struct NamedFunction {
    pub(super) name: String,
}

impl Request {
    /// True when the model may ask for this tool.
    pub(super) fn offers(&self, tool: &str) -> bool {
        self.tools
            .iter()
            .any(|offered| offered.function.name == tool)
    }

    /// Id of one call: the same whenever the same request comes again, another for each call of a conversation.
    pub(super) fn call_id(&self, index: usize) -> String {
        let texts: Vec<String> = self.messages.iter().map(Message::text).collect();
        format!("call_{}", stable(&format!("{index}\0{}", texts.join("\0"))))
    }

    fn includes_usage(&self) -> bool {
        self.stream_options
            .as_ref()
            .is_some_and(|options| options.include_usage)
    }
}

impl Message {
    /// The text, of a plain string or of typed parts.
    pub(super) fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| part.get("text")?.as_str())
                    .collect();
                texts.join("\n")
            }
            _ => String::new(),
        }
    }
}

/// What the model says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
}

/// A tool it asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// One event of the stream.
pub(super) struct Chunk {
    pub(super) data: String,
    /// Words come with a pause before them.
    pub(super) is_word: bool,
}

/// The whole reply as one object.
pub(super) fn completion(request: &Request, reply: &Reply) -> Value {
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .map(|call| call_json(call, &call.arguments.to_string()))
        .collect();
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(reply)});
    envelope(
        request,
        "chat.completion",
        &json!([choice]),
        &usage(request, reply),
    )
}

/// The reply as the events of a stream: word by word, then the calls with their arguments in pieces.
pub(super) fn chunks(request: &Request, reply: &Reply) -> Vec<Chunk> {
    let chunk = |is_word: bool, delta: Value, finish_reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
        let data = envelope(
            request,
            "chat.completion.chunk",
            &json!([choice]),
            &Value::Null,
        )
        .to_string();
        Chunk { data, is_word }
    };
    let mut chunks = vec![chunk(
        false,
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    chunks
        .extend(words(&reply.text).map(|word| chunk(true, json!({"content": word}), Value::Null)));
    for (index, call) in reply.calls.iter().enumerate() {
        let mut start = call_json(call, "");
        start["index"] = index.into();
        chunks.push(chunk(false, json!({"tool_calls": [start]}), Value::Null));
        for piece in halves(&call.arguments.to_string()) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            chunks.push(chunk(true, json!({"tool_calls": [more]}), Value::Null));
        }
    }
    chunks.push(chunk(false, json!({}), finish_reason(reply).into()));
    if request.includes_usage() {
        let data = envelope(
            request,
            "chat.completion.chunk",
            &json!([]),
            &usage(request, reply),
        )
        .to_string();
        chunks.push(Chunk {
            data,
            is_word: false,
        });
    }
    chunks.push(Chunk {
        data: "[DONE]".to_owned(),
        is_word: false,
    });
    chunks
}

/// An error as OpenAI writes it.
pub(super) fn error(message: &str) -> Value {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}})
}

fn envelope(request: &Request, object: &str, choices: &Value, usage: &Value) -> Value {
    let created = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    json!({
        "id": format!("chatcmpl-{}", request.call_id(usize::MAX).trim_start_matches("call_")),
        "object": object,
        "created": created,
        "model": request.model,
        "choices": choices,
        "usage": usage,
    })
}

fn call_json(call: &Call, arguments: &str) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": arguments}})
}

fn finish_reason(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    }
}

/// A word counts as a token.
fn usage(request: &Request, reply: &Reply) -> Value {
    let count = |text: &str| text.split_whitespace().count();
    let input: usize = request
        .messages
        .iter()
        .map(|message| count(&message.text()))
        .sum();
    let output = count(&reply.text) + reply.calls.len();
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}

/// The words, each with the white space behind it: together they are the text again.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

fn halves(text: &str) -> [&str; 2] {
    let middle = text.floor_char_boundary(text.len() / 2);
    [&text[..middle], &text[middle..]]
}

fn stable(text: &str) -> String {
    let mut id = Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
        .simple()
        .to_string();
    id.truncate(24);
    id
}
