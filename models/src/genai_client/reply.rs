//! Makes a reply from genai's events, within the limits (invariant 10, nothing grows without a bound).

use std::collections::BTreeMap;

use everturn_proto::Json;
use everturn_proto::event::Usage;
use everturn_stream::Part;
use genai::chat::{ContentPart, StopReason, StreamEnd, ToolCall};
use serde_json::{Value, json};

use super::{frames::Frames, gemini};
use crate::{
    error::ModelError,
    failure,
    limits::{check_calls, check_size, invalid},
    port::{ModelReply, ModelToolCall, ReplyListener},
    provider::ProviderKind,
};

/// The most characters of a stop reason that are kept. A stop reason is a word.
const MAX_REASON_CHARS: usize = 50;

/// Listens to one reply.
pub(super) struct Listener<'a> {
    provider: &'a str,
    kind: ProviderKind,
    heard_by: &'a mut dyn ReplyListener,
    text: String,
    reasoning: String,
    /// The arguments so far by call id, as the provider wrote them. At the end genai parses them, which loses digits of
    /// large numbers.
    letters: BTreeMap<String, String>,
    /// Number of calls with arguments in a single piece, and the arguments' bytes.
    whole_calls: usize,
    whole_bytes: usize,
}

impl<'a> Listener<'a> {
    pub(super) fn new(
        provider: &'a str,
        kind: ProviderKind,
        heard_by: &'a mut dyn ReplyListener,
    ) -> Self {
        Self {
            provider,
            kind,
            heard_by,
            text: String::new(),
            reasoning: String::new(),
            letters: BTreeMap::new(),
            whole_calls: 0,
            whole_bytes: 0,
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

    /// Takes a tool call in its current state: genai repeats the arguments so far with each piece. Gemini's calls
    /// arrive whole.
    pub(super) fn hear_call(&mut self, call: &ToolCall) -> Result<(), ModelError> {
        let Value::String(arguments) = &call.fn_arguments else {
            self.whole_calls += 1;
            self.whole_bytes += call.fn_arguments.to_string().len();
            check_calls(self.whole_calls)?;
            return check_size("arguments", self.whole_bytes);
        };
        check_size("arguments", arguments.len())?;
        check_calls(self.letters.len())?;
        self.letters.insert(call.call_id.clone(), arguments.clone());
        Ok(())
    }

    /// Makes the reply after the last event. `frames` has the data that genai drops.
    pub(super) fn end(
        self,
        mut end: StreamEnd,
        frames: Option<&Frames>,
    ) -> Result<ModelReply, ModelError> {
        let stop = end.captured_stop_reason.take();
        self.check_stop(stop.as_ref())?;
        let usage = end.captured_usage.take().unwrap_or_default();
        let signatures = match self.kind {
            ProviderKind::Anthropic => signatures(&end),
            _ => Vec::new(),
        };
        let is_cut = matches!(stop, Some(StopReason::MaxTokens(_)));
        let calls = end.captured_into_tool_calls().unwrap_or_default();
        let calls = match self.kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => {
                without_echoes(calls, &self.letters)
            }
            // Gemini's calls may share an id that genai made.
            ProviderKind::Anthropic | ProviderKind::Gemini => calls,
        };
        check_calls(calls.len())?;
        // genai silently drops the calls of a server that omits their `index`.
        if calls.is_empty() && matches!(stop, Some(StopReason::ToolCall(_))) {
            return Err(invalid(
                "The model stopped to call tools, and the reply has no tool call.",
            ));
        }
        // Gemini writes no part at all for a call that cannot be parsed, or for a call of a tool that was not offered.
        if let Some(StopReason::Other(reason)) = &stop
            && calls.is_empty()
            && self.kind == ProviderKind::Gemini
        {
            let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
            return Err(invalid(&format!(
                "The model's reply cannot be used ({reason})."
            )));
        }
        if calls.is_empty() && self.text.is_empty() {
            tracing::warn!(
                reason = stop.as_ref().map_or("none", StopReason::raw),
                "the model's reply is empty"
            );
        }
        let arguments = frames.map(Frames::arguments).unwrap_or_default();
        let mut arguments = arguments.into_iter();
        let call = |call: ToolCall| ModelToolCall {
            arguments: self.arguments(&call, arguments.next().as_deref(), is_cut),
            call_id: gemini::own_id(call.call_id).filter(|id| !id.is_empty()),
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
            usage: tokens(&usage, frames.map_or(0, Frames::thinking_tokens)),
            text: self.text,
            reasoning: self.reasoning,
        })
    }

    /// Returns an error when the stop reason makes the reply unusable.
    fn check_stop(&self, stop: Option<&StopReason>) -> Result<(), ModelError> {
        let is_gemini = self.kind == ProviderKind::Gemini;
        match stop {
            // Gemini's stream has no other end mark. genai also reports an end for a cut stream.
            None if is_gemini => Err(failure::stream_cut(self.provider)),
            Some(StopReason::ContentFilter(reason)) => {
                Err(failure::content_policy(self.provider, reason))
            }
            // DeepSeek and OpenRouter report a broken-off reply by these reasons.
            Some(StopReason::Other(reason))
                if matches!(reason.as_str(), "insufficient_system_resource" | "error") =>
            {
                Err(failure::broken_off(self.provider, reason))
            }
            _ => Ok(()),
        }
    }

    /// Returns the arguments as the provider wrote them, if the text has the meaning of genai's parsed value. `whole`
    /// is the text of a call that arrived in one piece.
    fn arguments(&self, call: &ToolCall, whole: Option<&str>, is_cut: bool) -> Json {
        match &call.fn_arguments {
            // Many servers send an empty text for a tool without arguments. In a cut reply, an empty text may be the
            // beginning of any arguments.
            Value::String(text) if text.trim().is_empty() && !is_cut => Json::of(&json!({})),
            Value::Null => Json::of(&json!({})),
            value => {
                let pieces = self.letters.get(&call.call_id);
                let letters = whole.or(pieces.map(String::as_str));
                let same = |text: &&str| {
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

/// Returns the blocks of thinking before a tool call, each with its signature. Anthropic requires every block back
/// unchanged.
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

/// Returns the calls without genai's copies: when a server counts `index` from 1, genai fills index 0 with a copy of
/// the next call's first piece.
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

fn tokens(usage: &genai::chat::Usage, thinking_tokens: u32) -> Usage {
    let count = |tokens: Option<i32>| {
        tokens
            .and_then(|tokens| u32::try_from(tokens).ok())
            .unwrap_or_default()
    };
    let (read, written) = (
        usage.prompt_tokens_details.as_ref(),
        usage.completion_tokens_details.as_ref(),
    );
    let reasoning_tokens = count(written.and_then(|written| written.reasoning_tokens));
    let reasoning_tokens = reasoning_tokens.max(thinking_tokens);
    Usage {
        input_tokens: count(usage.prompt_tokens),
        // genai does not count Gemini's reasoning in a reply with only reasoning.
        output_tokens: count(usage.completion_tokens).max(reasoning_tokens),
        cached_tokens: count(read.and_then(|read| read.cached_tokens)),
        cache_write_tokens: count(read.and_then(|read| read.cache_creation_tokens)),
        reasoning_tokens,
    }
}
