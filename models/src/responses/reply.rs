//! Makes a reply from the events of a response, and from the response itself.

use std::collections::BTreeMap;

use everturn_proto::event::Usage;
use everturn_proto::words::FailureCode;
use everturn_stream::Part;
use serde_json::{Value, json};

use crate::{
    error::ModelError,
    failure::{self, Call},
    limits::{check_size, invalid},
    port::{ModelReply, ReplyListener},
    wire::{Arguments, Calls, End, Piece, Received, Texts, count},
};

/// The text between two parts of a text: the parts of a summary, or messages before and after a model's thoughts.
const BREAK: &str = "\n\n";
/// The most items that are kept for a response whose last event does not repeat its items.
const MAX_ITEMS: usize = 256;
/// The longest id of a response that is kept.
const MAX_ID_BYTES: usize = 512;

/// The state of a response.
pub(super) enum State {
    /// The provider is still making the response.
    Running,
    /// The response has ended, as a success or a failure.
    Ended(Value),
}

impl State {
    /// Returns the state of a response by the provider's report.
    pub(super) fn of(response: Value) -> Self {
        match response["status"].as_str() {
            Some("queued" | "in_progress") => Self::Running,
            _ => Self::Ended(response),
        }
    }
}

/// Receives the events of one response, over every connection on which the response is read.
pub(super) struct Hearing<'a> {
    listener: &'a mut dyn ReplyListener,
    /// The number of the last event; repeated events are skipped.
    last: Option<u64>,
    text: Heard,
    reasoning: Heard,
    /// The complete items, by index.
    items: BTreeMap<u64, Value>,
}

/// The received part of a text.
#[derive(Default)]
struct Heard {
    text: String,
    /// The position of the last piece: the index of its item, and the index of its part in the item.
    position: Option<(u64, u64)>,
}

impl<'a> Hearing<'a> {
    pub(super) fn new(listener: &'a mut dyn ReplyListener) -> Self {
        Self {
            listener,
            last: None,
            text: Heard::default(),
            reasoning: Heard::default(),
            items: BTreeMap::new(),
        }
    }

    /// Returns the number of the last received event.
    pub(super) fn last(&self) -> Option<u64> {
        self.last
    }

    /// Reports to the listener that the provider makes the response in the background.
    pub(super) async fn accepted(&mut self, id: &str) -> Result<(), ModelError> {
        self.listener.accepted(id).await
    }

    /// Reports to the listener that the call is made again.
    pub(super) async fn made_again(&mut self) {
        self.listener.made_again().await;
    }

    /// Takes an event. Returns the response when the event ends it.
    pub(super) fn hear(&mut self, mut event: Value) -> Result<Option<Value>, ModelError> {
        if let Some(number) = event["sequence_number"].as_u64() {
            if self.last.is_some_and(|last| number <= last) {
                return Ok(None);
            }
            self.last = Some(number);
        }
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.hear_piece(Part::Text, &event, "content_index")?;
            }
            "response.reasoning_summary_text.delta" => {
                self.hear_piece(Part::Reasoning, &event, "summary_index")?;
            }
            "response.reasoning_text.delta" => {
                self.hear_piece(Part::Reasoning, &event, "content_index")?;
            }
            "response.output_item.done" if self.items.len() < MAX_ITEMS => {
                let position = event["output_index"].as_u64().unwrap_or_default();
                self.items.insert(position, event["item"].take());
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let mut response = event["response"].take();
                self.fill_in(&mut response);
                return Ok(Some(response));
            }
            _ => {}
        }
        Ok(None)
    }

    fn hear_piece(&mut self, part: Part, event: &Value, index: &str) -> Result<(), ModelError> {
        let piece = event["delta"].as_str().unwrap_or_default();
        let number = |key: &str| event[key].as_u64().unwrap_or_default();
        let position = (number("output_index"), number(index));
        let heard = self.heard(part);
        let is_next = heard
            .position
            .replace(position)
            .is_some_and(|last| last != position);
        let is_parted = is_next && !heard.text.is_empty();
        self.say(part, if is_parted { BREAK } else { "" })?;
        self.say(part, piece)
    }

    fn say(&mut self, part: Part, piece: &str) -> Result<(), ModelError> {
        if piece.is_empty() {
            return Ok(());
        }
        let heard = self.heard(part);
        check_size("text", heard.text.len() + piece.len())?;
        heard.text.push_str(piece);
        self.listener.delta(part, piece);
        Ok(())
    }

    fn heard(&mut self, part: Part) -> &mut Heard {
        match part {
            Part::Text => &mut self.text,
            Part::Reasoning => &mut self.reasoning,
        }
    }

    /// Adds the received items to the response, when the last event of a server does not repeat the items.
    fn fill_in(&mut self, response: &mut Value) {
        let is_empty = response["output"].as_array().is_none_or(Vec::is_empty);
        if is_empty && response.is_object() {
            let items = std::mem::take(&mut self.items);
            response["output"] = items.into_values().collect();
        }
    }

    /// Reports the part of a whole reply that the listener does not have yet.
    pub(super) fn finish(&mut self, reply: &ModelReply) -> Result<(), ModelError> {
        for (part, whole) in [
            (Part::Reasoning, &reply.reasoning),
            (Part::Text, &reply.text),
        ] {
            let rest = whole.strip_prefix(self.heard(part).text.as_str());
            self.say(part, rest.unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Returns the id of a response; `None` when the id is missing or too long.
pub(super) fn id(response: &Value) -> Option<&str> {
    let id = response["id"].as_str()?;
    (!id.is_empty() && id.len() <= MAX_ID_BYTES).then_some(id)
}

/// Returns the reply of an ended response, or the reason for a missing reply.
pub(super) fn reply(call: Call<'_>, response: &Value) -> Result<ModelReply, ModelError> {
    match response["status"].as_str() {
        Some("completed" | "incomplete") => whole_reply(call, response),
        Some("failed") => Err(failure::from_body(
            call,
            &json!({"error": response["error"]}),
        )),
        Some("cancelled") => Err(ModelError::new(
            FailureCode::LlmUnavailable,
            format!(
                "The response was cancelled at provider `{}`.",
                call.provider
            ),
        )),
        other => Err(failure::unreadable(call, &unknown_status(other))),
    }
}

/// Returns the log's text about the status. The status itself is not logged, because a provider may repeat a secret
/// there.
fn unknown_status(status: Option<&str>) -> &'static str {
    match status {
        Some(_) => "the status is an unknown word",
        None => "the status is missing",
    }
}

fn whole_reply(call: Call<'_>, response: &Value) -> Result<ModelReply, ModelError> {
    let items = response["output"].as_array();
    let items = items.map(Vec::as_slice).unwrap_or_default();
    let text = texts(items, "message", "content");
    let summary = texts(items, "reasoning", "summary");
    let reasoning = if summary.is_empty() {
        texts(items, "reasoning", "content")
    } else {
        summary
    };
    check_size("text", text.len())?;
    check_size("text", reasoning.len())?;
    let calls = tool_calls(items)?;
    let reason = response["incomplete_details"]["reason"].as_str();
    let end = End {
        word: reason.map(str::to_owned),
        detail: None,
    };
    let received = Received {
        calls,
        end,
        usage: usage(&response["usage"]),
        ..Received::default()
    };
    received.reply(call.provider, Texts { text, reasoning })
}

/// Returns the texts in the parts of every item of a type.
fn texts(items: &[Value], item_type: &str, parts: &str) -> String {
    let of_type = items.iter().filter(|item| item["type"] == item_type);
    let parts = of_type.filter_map(|item| item[parts].as_array()).flatten();
    let texts = parts.filter_map(|part| {
        let text = part["text"].as_str().or_else(|| part["refusal"].as_str());
        text.filter(|text| !text.is_empty())
    });
    texts.collect::<Vec<_>>().join(BREAK)
}

/// Returns the calls. A call has the thoughts before it.
fn tool_calls(items: &[Value]) -> Result<Calls, ModelError> {
    let mut calls = Calls::default();
    let mut thoughts = Vec::new();
    for (position, item) in items.iter().enumerate() {
        match item["type"].as_str() {
            Some("reasoning") => thoughts.extend(thought(item)),
            Some("function_call") => {
                let call = calls.hear(&Piece {
                    index: Some(position as u64),
                    order: None,
                    id: item["call_id"].as_str(),
                    name: item["name"].as_str(),
                    arguments: match &item["arguments"] {
                        Value::Null => Arguments::None,
                        Value::String(letters) => Arguments::Letters(letters),
                        value => Arguments::Whole(value.to_string()),
                    },
                })?;
                for thought in std::mem::take(&mut thoughts) {
                    calls.sign(call, thought)?;
                }
            }
            Some("custom_tool_call") => {
                return Err(invalid(
                    "The model called a tool that the request did not offer.",
                ));
            }
            _ => {}
        }
    }
    Ok(calls)
}

/// Returns a reasoning item in the form that the provider takes back; `None` when the item has no encrypted thoughts.
fn thought(item: &Value) -> Option<String> {
    let content = item["encrypted_content"].as_str()?;
    let summary = item.get("summary").cloned().unwrap_or_else(|| json!([]));
    let thought = json!({
        "type": "reasoning",
        "id": item["id"],
        "summary": summary,
        "encrypted_content": content,
    });
    Some(thought.to_string())
}

fn usage(usage: &Value) -> Usage {
    let count = |path: &str| count(usage, path);
    Usage {
        input_tokens: count("/input_tokens"),
        output_tokens: count("/output_tokens"),
        cached_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_tokens: count("/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        estimated: false,
    }
}
