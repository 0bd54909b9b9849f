//! What becomes of a tool's output. A large one is cut for the model and the readers, and kept whole by reference
//! (invariant 4, linear history); one past the hard limit becomes an error (invariant 10, nothing grows without a bound).

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_proto::{
    Json,
    limits::{TOOL_RESULT_INLINE_BYTES, TOOL_RESULT_MAX_BYTES},
    words::{EventType, ToolStatus},
};
use serde_json::json;

use crate::api::ToolEnd;

impl ToolEnd {
    /// The end of a tool that gave `result`; `is_error`: it says what went wrong.
    pub fn of_result(result: Json, is_error: bool, duration_ms: u32) -> Self {
        let bytes = result.as_str().len();
        if bytes > TOOL_RESULT_MAX_BYTES {
            let message = format!(
                "The tool gave {bytes} bytes; the limit is {TOOL_RESULT_MAX_BYTES}. Ask it for less, or for a part."
            );
            return Self::failed(&message, duration_ms);
        }
        let (result, full_result) = cut(storable(result));
        let status = if is_error {
            ToolStatus::Failed
        } else {
            ToolStatus::Completed
        };
        Self {
            status,
            result,
            full_result,
            is_error,
            duration_ms,
            events: Vec::new(),
        }
    }

    /// The end of a tool that failed, in a sentence the model can read. It may be a server's: of any length, with any
    /// character.
    pub fn failed(message: &str, duration_ms: u32) -> Self {
        let result = Json::of(&json!({ "error": error_text(message) }));
        Self {
            status: ToolStatus::Failed,
            result,
            full_result: None,
            is_error: true,
            duration_ms,
            events: Vec::new(),
        }
    }

    /// The end of a tool of which all that is known is `message`.
    pub fn unknown(message: &str, duration_ms: u32) -> Self {
        let message = format!("{message} It may or may not have had its effect.");
        Self {
            status: ToolStatus::OutcomeUnknown,
            ..Self::failed(&message, duration_ms)
        }
    }

    /// Adds the events that the tool itself emits.
    #[must_use]
    pub fn with_events(self, events: Vec<(EventType, Json)>) -> Self {
        let storable = |(event_type, data): (EventType, Json)| {
            let data = data.made_storable().unwrap_or(data);
            (event_type, data)
        };
        Self {
            events: events.into_iter().map(storable).collect(),
            ..self
        }
    }
}

/// The words of an error: at most as long as what a model sees of a result, and without NUL, which PostgreSQL cannot hold.
fn error_text(message: &str) -> String {
    let shown = beginning(message);
    let note = if shown.len() < message.len() {
        " … (cut)"
    } else {
        ""
    };
    format!("{}{note}", shown.replace('\0', "\u{FFFD}"))
}

/// As much of a text as a model sees, cut at a character.
fn beginning(text: &str) -> &str {
    let end = (0..=TOOL_RESULT_INLINE_BYTES.min(text.len()))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// A result past the inline limit is cut, with a note that says so; the whole is the second part.
fn cut(result: Json) -> (Json, Option<Json>) {
    let text = result.as_str();
    if text.len() <= TOOL_RESULT_INLINE_BYTES {
        return (result, None);
    }
    // A string is shown as text, anything else as its JSON.
    let shown: String = result.decode().unwrap_or_else(|_| text.to_owned());
    let cut = json!({
        "truncated": true,
        "total_bytes": shown.len(),
        "note": "The result was cut; the whole is kept with the tool execution.",
        "text": beginning(&shown),
    });
    (Json::of(&cut), Some(result))
}

/// PostgreSQL's JSONB cannot hold U+0000 or lone surrogates: such a result travels as base64 with its type.
fn storable(result: Json) -> Json {
    if result.made_storable().is_none() {
        return result;
    }
    let data = STANDARD.encode(result.as_str());
    Json::of(&json!({ "encoding": "base64", "type": "application/json", "data": data }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(result: &impl serde::Serialize) -> ToolEnd {
        ToolEnd::of_result(Json::of(result), false, 1)
    }

    #[test]
    fn small_results_stay_as_they_are() {
        let end = output(&json!({"n": 9_007_199_254_740_993_u64}));
        assert_eq!(end.result.as_str(), r#"{"n":9007199254740993}"#);
        assert_eq!((end.full_result, end.is_error), (None, false));
    }

    #[test]
    fn large_results_are_cut_at_a_character_and_kept_whole() {
        let end = output(&"ü".repeat(TOOL_RESULT_INLINE_BYTES));
        assert!(end.result.as_str().len() < TOOL_RESULT_INLINE_BYTES + 300);
        assert_eq!(end.result.to_value()["truncated"], true);
        assert_eq!(
            end.full_result.unwrap().as_str().len(),
            2 * TOOL_RESULT_INLINE_BYTES + 2
        );
    }

    #[test]
    fn too_large_results_are_errors() {
        let end = output(&"x".repeat(TOOL_RESULT_MAX_BYTES));
        assert!(end.is_error);
        assert!(end.result.as_str().contains("limit"));
    }

    #[test]
    fn errors_are_cut_and_storable() {
        assert_eq!(error_text("a\0b"), "a\u{FFFD}b");
        let long = error_text(&"ü".repeat(TOOL_RESULT_INLINE_BYTES));
        assert!(long.ends_with("(cut)") && long.len() < TOOL_RESULT_INLINE_BYTES + 20);
    }

    #[test]
    fn nul_becomes_base64() {
        let end = output(&"a\0b");
        assert_eq!(end.result.to_value()["encoding"], "base64");
        assert!(!end.result.as_str().contains("\\u0000"));
    }
}
