//! Data of a stream that genai drops, read from the stream's frames: Gemini's arguments as written, Gemini's reason for
//! refusing a prompt, and the tokens of Anthropic's thinking.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everturn_proto::limits::{MAX_TEXT_BYTES, MAX_TOOL_CALLS};
use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::provider::ProviderKind;

/// Reads the data that genai drops from the frames of one stream.
pub(super) struct Frames {
    kind: ProviderKind,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The arguments of the calls, in order, as the provider wrote them: genai parses them and loses digits.
    arguments: Vec<String>,
    bytes: usize,
    /// The reason why the provider refused the prompt.
    blocked: Option<String>,
    thinking_tokens: u32,
}

impl Frames {
    /// Returns the reader for streams of this kind of provider; `None` for a kind of which genai drops nothing.
    pub(super) fn of(kind: ProviderKind) -> Option<Arc<Self>> {
        match kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => None,
            ProviderKind::Anthropic | ProviderKind::Gemini => Some(Arc::new(Self {
                kind,
                seen: Mutex::default(),
            })),
        }
    }

    /// Returns the tokens of Anthropic's thinking, or 0.
    pub(super) fn thinking_tokens(&self) -> u32 {
        self.lock().thinking_tokens
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_anthropic(&self, data: &str) {
        // Few frames have token counts, and a long text comes in many frames.
        let counted = data.contains("thinking_tokens");
        let read: Option<Value> = counted.then(|| serde_json::from_str(data).ok()).flatten();
        let tokens = read.and_then(|it| {
            it.pointer("/usage/output_tokens_details/thinking_tokens")?
                .as_u64()
        });
        if let Some(tokens) = tokens.and_then(|tokens| u32::try_from(tokens).ok()) {
            self.lock().thinking_tokens = tokens;
        }
    }

    /// Returns the arguments of the calls, in order.
    pub(super) fn arguments(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().arguments)
    }

    /// Returns Gemini's reason for refusing the prompt.
    pub(super) fn blocked(&self) -> Option<String> {
        self.lock().blocked.clone()
    }

    fn read_gemini(&self, data: &str) {
        let Ok(read) = serde_json::from_str::<Frame<'_>>(data) else {
            return;
        };
        let mut seen = self.lock();
        if let Some(reason) = read.prompt_feedback.and_then(|it| it.block_reason) {
            seen.blocked = Some(reason);
        }
        // genai reads the first candidate only.
        let parts = read.candidates.into_iter().take(1);
        let calls = parts
            .filter_map(|candidate| candidate.content)
            .flat_map(|content| content.parts)
            .filter_map(|part| part.function_call);
        for call in calls {
            let arguments = call.args.map_or("null", RawValue::get);
            seen.bytes += arguments.len();
            if seen.bytes <= MAX_TEXT_BYTES && seen.arguments.len() <= MAX_TOOL_CALLS {
                seen.arguments.push(arguments.to_owned());
            }
        }
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        match self.kind {
            ProviderKind::Gemini => self.read_gemini(frame.data),
            ProviderKind::Anthropic => self.read_anthropic(frame.data),
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => {}
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Frame<'a> {
    #[serde(default)]
    candidates: Vec<Candidate<'a>>,
    prompt_feedback: Option<PromptFeedback>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Candidate<'a> {
    content: Option<Content<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Content<'a> {
    #[serde(default)]
    parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Part<'a> {
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_frames_are_read_within_the_limits(
            any in "\\PC{0,60}",
            args in prop::collection::vec("\\{\"a\":[1-9]{1,40}\\}|null|[\\[\\]{},]{1,5}|\"[a-z]{0,9}\"", 0..5),
            tokens in "-?(0|[1-9][0-9]{0,19})|\"x\"",
        ) {
            let calls: Vec<_> = args.iter().map(|args| format!(r#"{{"functionCall":{{"name":"t","args":{args}}}}}"#)).collect();
            let parts = calls.join(",");
            let gemini = format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}}}}]}}"#);
            let anthropic = format!(r#"{{"usage":{{"output_tokens_details":{{"thinking_tokens":{tokens}}}}}}}"#);
            for kind in [ProviderKind::Gemini, ProviderKind::Anthropic] {
                let frames = Frames::of(kind).unwrap();
                for data in [&any, &gemini, &anthropic] {
                    frames.read_gemini(data);
                    frames.read_anthropic(data);
                }
                let read: Option<u32> = tokens.parse().ok();
                prop_assert_eq!(frames.thinking_tokens(), read.unwrap_or_default());
                let whole = serde_json::from_str::<Value>(&gemini).is_ok();
                let arguments = frames.arguments();
                prop_assert_eq!(arguments.len(), if whole { args.len() } else { 0 }, "{}", gemini);
                prop_assert!(!whole || arguments == args);
            }
        }

        #[test]
        fn what_is_kept_of_many_calls_is_bounded(calls in 0_usize..200, bytes in 0_usize..40_000) {
            let call = format!(r#"{{"functionCall":{{"name":"t","args":"{}"}}}}"#, "x".repeat(bytes));
            let frame = format!(r#"{{"candidates":[{{"content":{{"parts":[{call}]}}}}]}}"#);
            let frames = Frames::of(ProviderKind::Gemini).unwrap();
            for _ in 0..calls {
                frames.read_gemini(&frame);
            }
            let kept = frames.arguments();
            prop_assert!(kept.len() <= MAX_TOOL_CALLS + 1);
            prop_assert!(kept.iter().map(String::len).sum::<usize>() <= MAX_TEXT_BYTES);
        }
    }
}
