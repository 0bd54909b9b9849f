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
    wire::{
        Arguments, BREAK, Calls, Citations, End, Hearing, Piece, Received, Texts, count,
        without_nul,
    },
};

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
pub(super) struct Events<'a> {
    hearing: Hearing<'a>,
    /// True after the first event.
    has_begun: bool,
    /// The number of the last event; repeated events are skipped.
    last: Option<u64>,
    /// The indexes of the items with a call whose arguments the listener gets.
    calls: Vec<u64>,
    /// The complete items, by index.
    items: BTreeMap<u64, Value>,
}

impl<'a> Events<'a> {
    pub(super) fn new(listener: &'a mut dyn ReplyListener) -> Self {
        Self {
            hearing: Hearing::new(listener, false),
            has_begun: false,
            last: None,
            calls: Vec::new(),
            items: BTreeMap::new(),
        }
    }

    /// Returns the number of the last received event.
    pub(super) fn last(&self) -> Option<u64> {
        self.last
    }

    /// True after the first event.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Reports to the listener that the provider makes the response in the background.
    pub(super) async fn accepted(&mut self, id: &str) -> Result<(), ModelError> {
        self.hearing.listener().accepted(id).await
    }

    /// Reports to the listener that the call is made again.
    pub(super) async fn made_again(&mut self) -> Result<(), ModelError> {
        self.hearing.listener().made_again().await
    }

    /// Takes an event. Returns the response when the event ends it.
    pub(super) fn hear(&mut self, mut event: Value) -> Result<Option<Value>, ModelError> {
        self.has_begun = true;
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
            "response.output_item.added" => self.begin_call(&event),
            "response.function_call_arguments.delta" => self.hear_call(&event),
            "response.output_item.done" if self.items.len() < MAX_ITEMS => {
                let position = event["output_index"].as_u64().unwrap_or_default();
                self.items.insert(position, event["item"].take());
            }
            end @ ("response.completed" | "response.incomplete" | "response.failed") => {
                let status = end.trim_start_matches("response.").to_owned();
                let mut response = event["response"].take();
                self.fill_in(&mut response, status);
                return Ok(Some(response));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Reports the name of a call that begins.
    fn begin_call(&mut self, event: &Value) {
        let (item, index) = (&event["item"], event["output_index"].as_u64());
        if item["type"] != "function_call" {
            return;
        }
        let name = item["name"].as_str().unwrap_or_default();
        if let (Some(index), Some(part)) = (index, Part::of_call(self.calls.len())) {
            self.calls.push(index);
            self.hearing.listener().delta(part, &format!("{name}\n"));
        }
    }

    /// Reports a piece of the arguments of a call.
    fn hear_call(&mut self, event: &Value) {
        let index = event["output_index"].as_u64();
        let position = self.calls.iter().position(|call| Some(*call) == index);
        let part = position.and_then(Part::of_call);
        let piece = event["delta"].as_str().unwrap_or_default();
        if let Some(part) = part.filter(|_| !piece.is_empty()) {
            self.hearing.listener().delta(part, &without_nul(piece));
        }
    }

    fn hear_piece(&mut self, part: Part, event: &Value, index: &str) -> Result<(), ModelError> {
        let piece = event["delta"].as_str().unwrap_or_default();
        let number = |key: &str| event[key].as_u64().unwrap_or_default();
        let block = (number("output_index"), number(index));
        self.hearing.hear_block(part, block, piece)
    }

    /// Adds the received items and the status to the response, when the last event of a server does not repeat them. A
    /// server that sends no items either has sent the text in pieces.
    fn fill_in(&mut self, response: &mut Value, status: String) {
        let Some(fields) = response.as_object_mut() else {
            return;
        };
        let is_missing = |value: Option<&Value>| value.is_none_or(Value::is_null);
        if is_missing(fields.get("status")) {
            fields.insert("status".to_owned(), status.into());
        }
        let output = fields.get("output").and_then(Value::as_array);
        if output.is_none_or(Vec::is_empty) {
            let mut items: Vec<Value> = std::mem::take(&mut self.items).into_values().collect();
            let has_text = items.iter().any(|item| item["type"] == "message");
            let text = self.hearing.text();
            if !has_text && !text.is_empty() {
                items.push(json!({"type": "message", "content": [{"text": text}]}));
            }
            fields.insert("output".to_owned(), items.into());
        }
    }

    /// Reports the part of a whole reply that the listener does not have yet.
    pub(super) fn finish(&mut self, reply: &ModelReply) -> Result<(), ModelError> {
        self.hearing.hear_rest(Part::Reasoning, &reply.reasoning)?;
        self.hearing.hear_rest(Part::Text, &reply.text)
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
        citations: citations(items),
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
    without_nul(&texts.collect::<Vec<_>>().join(BREAK))
}

/// Returns the sources in the parts of the messages.
fn citations(items: &[Value]) -> Citations {
    let mut citations = Citations::default();
    let messages = items.iter().filter(|item| item["type"] == "message");
    let parts = messages.filter_map(|item| item["content"].as_array());
    for part in parts.flatten() {
        citations.hear_list(&part["annotations"]);
    }
    citations
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
