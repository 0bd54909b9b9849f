//! Texts of models and tools in spans. The operator must ask for them, because the texts contain user data.

use everturn_models::{ModelReply, ModelRequest};
use opentelemetry::KeyValue;
use serde_json::{Value, json};

/// The most bytes of one attribute. Collectors refuse large requests, and people do not read longer texts in a span.
const MAX_BYTES: usize = 16 * 1024;

/// Whether spans contain texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Content {
    is_wanted: bool,
}

impl Content {
    pub(super) fn new(is_wanted: bool) -> Self {
        Self { is_wanted }
    }

    /// Returns the attribute with a text, or `None` when texts are switched off.
    pub(super) fn text(self, key: &'static str, text: impl FnOnce() -> String) -> Option<KeyValue> {
        self.is_wanted
            .then(|| KeyValue::new(key, shortened(text())))
    }

    /// Returns the request to a model, in the form of the GenAI conventions.
    pub(super) fn request(self, request: &ModelRequest) -> impl Iterator<Item = KeyValue> {
        let instructions = request.instructions.as_ref().and_then(|instructions| {
            self.text("gen_ai.system_instructions", || {
                json!([part(instructions)]).to_string()
            })
        });
        let messages = self.text("gen_ai.input.messages", || {
            let message = |message: &everturn_store::ContextMessage| {
                let calls = message.tool_calls.iter().map(
                    |call| json!({"type": "tool_call", "id": call.call_id, "name": call.tool_name}),
                );
                let texts = (!message.content.is_empty()).then(|| part(&message.content));
                let parts: Vec<_> = texts.into_iter().chain(calls).collect();
                json!({"role": message.role.as_str(), "parts": parts})
            };
            let messages = request.messages.iter().map(message);
            messages.collect::<Value>().to_string()
        });
        instructions.into_iter().chain(messages)
    }

    /// Returns the reply of a model, in the form of the GenAI conventions.
    pub(super) fn reply(self, reply: &ModelReply, finish: &str) -> Option<KeyValue> {
        self.text("gen_ai.output.messages", || {
            let calls = reply.tool_calls.iter().map(|call| {
                json!({"type": "tool_call", "name": call.tool_name, "arguments": call.arguments.to_value()})
            });
            let parts: Vec<_> = [part(&reply.text)].into_iter().chain(calls).collect();
            json!([{"role": "assistant", "parts": parts, "finish_reason": finish}]).to_string()
        })
    }
}

fn part(text: &str) -> Value {
    json!({"type": "text", "content": text})
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_BYTES {
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        text.push('…');
    }
    text
}
