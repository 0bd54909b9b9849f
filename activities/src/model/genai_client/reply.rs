//! From genai's events to a reply, within the limits (invariant 10, nothing grows without a bound).

use std::collections::BTreeMap;

use everturn_proto::Json;
use everturn_stream::Part;
use genai::chat::{ContentPart, StopReason, StreamEnd, ToolCall};
use serde_json::{Value, json};

use crate::model::{
    ModelError, ModelReply, ModelToolCall, ReplyListener, Usage,
    limits::{check_calls, check_size, invalid},
};

/// Listens to one reply.
pub(super) struct Listener<'a> {
    heard_by: &'a mut dyn ReplyListener,
    text: String,
    reasoning: String,
    /// The arguments so far by call id, as the provider wrote them. genai parses them in the end, which loses digits of
    /// large numbers.
    letters: BTreeMap<String, String>,
}

impl<'a> Listener<'a> {
    pub(super) fn new(heard_by: &'a mut dyn ReplyListener) -> Self {
        Self {
            heard_by,
            text: String::new(),
            reasoning: String::new(),
            letters: BTreeMap::new(),
        }
    }

    /// Takes a piece of a text.
    pub(super) fn hear(&mut self, part: Part, piece: &str) -> Result<(), ModelError> {
        let text = match part {
            Part::Text => &mut self.text,
            Part::Reasoning => &mut self.reasoning,
        };
        check_size("text", text.len() + piece.len())?;
        text.push_str(piece);
        self.heard_by.delta(part, piece);
        Ok(())
    }

    /// Takes a tool call as far as it has come: genai repeats all of its arguments with each piece.
    pub(super) fn hear_call(&mut self, call: &ToolCall) -> Result<(), ModelError> {
        let Value::String(arguments) = &call.fn_arguments else {
            return Ok(());
        };
        check_size("arguments", arguments.len())?;
        check_calls(self.letters.len())?;
        self.letters.insert(call.call_id.clone(), arguments.clone());
        Ok(())
    }

    /// Makes the reply, when everything has come.
    pub(super) fn end(self, mut end: StreamEnd) -> Result<ModelReply, ModelError> {
        let stop = end.captured_stop_reason.take();
        let usage = end.captured_usage.take().unwrap_or_default();
        let signatures = signatures(&end);
        let is_cut = matches!(stop, Some(StopReason::MaxTokens(_)));
        let calls = without_echoes(
            end.captured_into_tool_calls().unwrap_or_default(),
            &self.letters,
        );
        check_calls(calls.len())?;
        // genai drops the calls of a server that leaves out their `index`, and says nothing.
        if calls.is_empty() && matches!(stop, Some(StopReason::ToolCall(_))) {
            return Err(invalid(
                "The model stopped to call tools, and its reply holds no tool call.",
            ));
        }
        if calls.is_empty() && self.text.is_empty() {
            tracing::warn!(
                reason = stop.as_ref().map_or("none", StopReason::raw),
                "the model's reply is empty"
            );
        }
        let call = |call: ToolCall| ModelToolCall {
            arguments: self.arguments(&call, is_cut),
            call_id: Some(call.call_id).filter(|id| !id.is_empty()),
            tool_name: call.fn_name,
            signatures: call.thought_signatures.unwrap_or_default(),
        };
        let mut tool_calls: Vec<ModelToolCall> = calls.into_iter().map(call).collect();
        if let Some(first) = tool_calls.first_mut().filter(|_| !signatures.is_empty()) {
            first.signatures = signatures;
        }
        Ok(ModelReply {
            tool_calls,
            is_cut,
            usage: tokens(&usage),
            text: self.text,
            reasoning: self.reasoning,
        })
    }

    /// The arguments as the provider wrote them, when that text means the same as what genai parsed.
    fn arguments(&self, call: &ToolCall, is_cut: bool) -> Json {
        match &call.fn_arguments {
            // Many servers send an empty text for a tool without arguments. In a reply that was cut, it may be the
            // beginning of anything.
            Value::String(text) if text.trim().is_empty() && !is_cut => Json::of(&json!({})),
            Value::Null => Json::of(&json!({})),
            value => {
                let letters = self.letters.get(&call.call_id);
                let same = |text: &&String| {
                    serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
                };
                letters
                    .filter(same)
                    .and_then(|text| Json::parse(text.trim()).ok())
                    .unwrap_or_else(|| Json::of(value))
            }
        }
    }
}

/// The blocks of thinking before a tool call, each with its signature. Anthropic wants every one back as it came.
fn signatures(end: &StreamEnd) -> Vec<String> {
    let Some(content) = &end.captured_content else {
        return Vec::new();
    };
    let mut blocks = Vec::new();
    let mut parts = content.parts().iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            ContentPart::ThoughtSignature(signature) => {
                if let Some(ContentPart::ReasoningContent(thinking)) = parts.peek() {
                    blocks.push(
                        json!({"type": "thinking", "thinking": thinking, "signature": signature})
                            .to_string(),
                    );
                }
            }
            ContentPart::Custom(custom) if custom.typ() == Some("redacted_thinking") => {
                blocks.push(custom.data.to_string());
            }
            _ => {}
        }
    }
    blocks
}

/// The calls without those that genai makes up: when a server counts `index` from 1, it fills place 0 with a copy
/// of the first piece of the call behind it.
fn without_echoes(calls: Vec<ToolCall>, letters: &BTreeMap<String, String>) -> Vec<ToolCall> {
    let is_echo = |call: &ToolCall, later: &ToolCall| {
        let is_piece = |text: &str| {
            letters
                .get(&call.call_id)
                .is_some_and(|whole| whole.starts_with(text))
        };
        call.call_id == later.call_id
            && call.fn_name == later.fn_name
            && (call.fn_arguments == later.fn_arguments
                || call.fn_arguments.as_str().is_some_and(is_piece))
    };
    let mut kept: Vec<ToolCall> = Vec::with_capacity(calls.len());
    for call in calls {
        kept.retain(|earlier| !is_echo(earlier, &call));
        kept.push(call);
    }
    kept
}

fn tokens(usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| {
        tokens
            .and_then(|tokens| u32::try_from(tokens).ok())
            .unwrap_or_default()
    };
    let (read, written) = (
        usage.prompt_tokens_details.as_ref(),
        usage.completion_tokens_details.as_ref(),
    );
    Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_tokens: count(read.and_then(|read| read.cached_tokens)),
        cache_write_tokens: count(read.and_then(|read| read.cache_creation_tokens)),
        reasoning_tokens: count(written.and_then(|written| written.reasoning_tokens)),
    }
}
