//! The part of OpenAI's chat completions that the demo model needs.

use serde::Deserialize;
use serde_json::{Value, json};

/// A request. The reply is always streamed, whether the request asks for streaming or not.
#[derive(Debug, Deserialize)]
pub(super) struct Request {
    #[serde(default)]
    model: String,
    pub(super) messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<OfferedTool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    pub(super) tool_calls: Vec<AskedCall>,
    #[serde(default)]
    pub(super) tool_call_id: String,
}

/// A call in an assistant message.
#[derive(Debug, Deserialize)]
pub(super) struct AskedCall {
    pub(super) id: String,
    pub(super) function: AskedFunction,
}

#[derive(Debug, Deserialize)]
pub(super) struct AskedFunction {
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Debug, Deserialize)]
struct OfferedTool {
    function: OfferedFunction,
}

/// A tool that the request offers.
#[derive(Debug, Deserialize)]
pub(super) struct OfferedFunction {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    /// The JSON schema of the input.
    #[serde(default)]
    pub(super) parameters: Value,
}

impl Request {
    /// True when the request offers the tool.
    pub(super) fn offers(&self, tool: &str) -> bool {
        self.offered().any(|offered| offered.name == tool)
    }

    /// Returns the offered tools, in their order.
    pub(super) fn offered(&self) -> impl Iterator<Item = &OfferedFunction> {
        self.tools.iter().map(|offered| &offered.function)
    }

    /// Returns the agent's instructions; empty without instructions.
    pub(super) fn instructions(&self) -> String {
        let system = self
            .messages
            .iter()
            .find(|message| message.role == "system");
        system.map(Message::text).unwrap_or_default()
    }
}

impl Message {
    /// Returns the text of a plain string or of typed parts.
    pub(super) fn text(&self) -> String {
        let of_part = |part: &Value| part["text"].as_str().map(str::to_owned);
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().filter_map(of_part).collect(),
            _ => String::new(),
        }
    }
}

/// The reply of the model.
#[derive(Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
}

/// A tool call of the model.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// Returns the reply as the data of a stream's events: word by word, then the calls, then the usage.
pub(super) fn chunks(request: &Request, reply: &Reply) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let object = json!({
            "id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": request.model,
            "choices": choices, "usage": usage,
        });
        object.to_string()
    };
    let delta = |delta: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        chunk(json!([choice]), Value::Null)
    };
    let mut chunks: Vec<_> = reply
        .text
        .split_inclusive(char::is_whitespace)
        .map(|word| delta(json!({"content": word})))
        .collect();
    for (index, call) in reply.calls.iter().enumerate() {
        // A repeated request gets identical ids, and each call of a conversation gets a unique id.
        let id = format!("call_{}_{index}", request.messages.len());
        let arguments = call.arguments.to_string();
        let function = json!({"name": call.tool, "arguments": arguments});
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        chunks.push(delta(json!({"tool_calls": [call]})));
    }
    let finish_reason = if reply.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let finish = json!({"index": 0, "delta": {}, "finish_reason": finish_reason});
    chunks.push(chunk(json!([finish]), Value::Null));
    chunks.push(chunk(json!([]), usage(request, reply)));
    chunks.push("[DONE]".to_owned());
    chunks
}

/// Returns the usage, with a token per word.
fn usage(request: &Request, reply: &Reply) -> Value {
    let count = |text: &str| text.split_whitespace().count();
    let messages = request.messages.iter();
    let input: usize = messages.map(|message| count(&message.text())).sum();
    let output = count(&reply.text) + reply.calls.len();
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}

/// Returns an error in OpenAI's format.
pub(super) fn error(message: &str) -> Value {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}})
}
