//! Limits of a tool's output. The store cuts a large output for the model and the readers, and keeps the whole output
//! by reference (invariant 4, linear history). An output past the hard limit becomes an error (invariant 10, nothing
//! grows without a bound).

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_proto::{
    Json, ToolResultEvents,
    limits::{TOOL_RESULT_INLINE_BYTES, TOOL_RESULT_MAX_BYTES},
    words::{EventType, ToolStatus},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::{ToolEnd, ToolResult};

impl ToolEnd {
    /// Returns the end of a tool with `result`, whose field `everturn/events` may have events for the turn. `is_error`: the
    /// result describes an error, and keeps the field.
    pub fn of_tool(execution_id: &str, result: Json, is_error: bool, duration_ms: u32) -> Self {
        let is_too_large = result.as_str().len() > TOOL_RESULT_MAX_BYTES;
        if is_error || is_too_large {
            return Self::of_result(execution_id, result, is_error, duration_ms);
        }
        let (result, taken) = ToolResultEvents::take(result);
        for reason in &taken.left_out {
            tracing::warn!(
                execution_id,
                reason,
                "an event in a tool's result was left out"
            );
        }
        let end = Self::of_result(execution_id, result, false, duration_ms);
        end.with_events(taken.events)
    }

    /// Returns the end of a tool execution with `result`. `is_error`: the result describes an error.
    pub fn of_result(execution_id: &str, result: Json, is_error: bool, duration_ms: u32) -> Self {
        let bytes = result.as_str().len();
        if bytes > TOOL_RESULT_MAX_BYTES {
            let message = format!(
                "The tool gave {bytes} bytes; the limit is {TOOL_RESULT_MAX_BYTES}. Ask it for less, or for a part."
            );
            return Self::failed(&message, duration_ms);
        }
        let (result, full_result) = cut(execution_id, storable(result));
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

    /// Returns the end of a failed tool, with a message for the model. The message may come from a server, with any
    /// length and any character.
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

    /// Returns the end of a tool with an unknown outcome. `message` says why the outcome is unknown.
    pub fn unknown(message: &str, duration_ms: u32) -> Self {
        let message = format!("{message} It may or may not have had its effect.");
        Self {
            status: ToolStatus::OutcomeUnknown,
            ..Self::failed(&message, duration_ms)
        }
    }

    /// Adds events of the tool behind earlier events of the end.
    #[must_use]
    pub fn with_events(mut self, events: Vec<(EventType, Json)>) -> Self {
        let storable = |(event_type, data): (EventType, Json)| {
            let data = data.made_storable().unwrap_or(data);
            (event_type, data)
        };
        self.events.extend(events.into_iter().map(storable));
        self
    }
}

/// Returns the text of an error. The text is no longer than a model's view of a result, and has no NUL, because
/// PostgreSQL cannot hold NUL.
fn error_text(message: &str) -> String {
    let shown = beginning(message);
    let note = if shown.len() < message.len() { CUT } else { "" };
    format!("{}{note}", shown.replace('\0', "\u{FFFD}"))
}

/// Returns a model's view of a text: the beginning, cut between characters.
fn beginning(text: &str) -> &str {
    beginning_of(text, TOOL_RESULT_INLINE_BYTES)
}

/// Returns the beginning of a text, at most `most_bytes` bytes, cut between characters.
fn beginning_of(text: &str, most_bytes: usize) -> &str {
    let end = (0..=most_bytes.min(text.len()))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// The suffix of a cut text.
const CUT: &str = " … (cut)";

/// The model's note beside a cut result. The tool's name is [`READ_RESULT_TOOL`].
const CUT_NOTE: &str = "The result was cut; tool `read_result` reads the rest of it.";

/// A result shown in part: the model and the readers see this value instead.
#[derive(Debug, Serialize, Deserialize)]
struct CutResult {
    truncated: bool,
    total_bytes: usize,
    note: String,
    execution_id: String,
    next_offset_bytes: usize,
    text: String,
}

impl ToolResult {
    /// Returns true if the result is shown in part. [`ToolResults`](crate::ToolResults) reads the rest.
    pub fn is_cut(&self) -> bool {
        // Most results are short. The length check saves their decoding.
        self.result.as_str().len() > TOOL_RESULT_INLINE_BYTES
            && self.result.decode::<CutResult>().is_ok()
    }

    /// Returns the result as text, cut after `most_bytes` bytes. The text does not explain how to read the rest.
    pub fn beginning(&self, most_bytes: usize) -> String {
        let (text, is_whole) = if let Ok(cut) = self.result.decode::<CutResult>() {
            (cut.text, false)
        } else {
            let text = self.result.decode::<String>();
            let json = |_| self.result.as_str().to_owned();
            (text.unwrap_or_else(json), true)
        };
        let shown = beginning_of(&text, most_bytes);
        if is_whole && shown.len() == text.len() {
            text
        } else {
            format!("{shown}{CUT}")
        }
    }

    /// Shortens a result of more than `most_bytes` bytes, and adds a note on reading the rest. Equal results always get
    /// equal short texts.
    pub fn shorten(&mut self, most_bytes: usize) {
        let text = self.result.as_str();
        if text.len() <= most_bytes {
            return;
        }
        let cut = if let Ok(cut) = self.result.decode::<CutResult>() {
            let text = beginning_of(&cut.text, most_bytes).to_owned();
            CutResult {
                next_offset_bytes: text.len().min(cut.next_offset_bytes),
                text,
                ..cut
            }
        } else {
            let string: Option<String> = self.result.decode().ok();
            let is_text = string.is_some();
            let whole = string.unwrap_or_else(|| text.to_owned());
            let shown = beginning_of(&whole, most_bytes).to_owned();
            CutResult {
                truncated: true,
                total_bytes: whole.len(),
                note: CUT_NOTE.to_owned(),
                execution_id: self.execution_id.clone(),
                // The store may write JSON with different spaces. Only a string keeps its offsets, therefore a reader
                // of any different JSON starts at 0.
                next_offset_bytes: if is_text { shown.len() } else { 0 },
                text: shown,
            }
        };
        self.result = Json::of(&cut);
    }
}

/// Cuts a result past the inline limit and adds a note. Returns the whole result as the second part. A short result
/// becomes a string in two cases: its numbers would be too long in full notation (a string keeps the short notation),
/// or the result is too deep for readers of its event.
fn cut(execution_id: &str, result: Json) -> (Json, Option<Json>) {
    let text = result.as_str();
    if text.len() <= TOOL_RESULT_INLINE_BYTES {
        let is_short = result.stored_len() <= TOOL_RESULT_INLINE_BYTES;
        let shown = if is_short && !result.is_too_deep() {
            result
        } else {
            Json::of(&text)
        };
        return (shown, None);
    }
    // A string is shown as text. JSON of any other type is shown as JSON.
    let shown: String = result.decode().unwrap_or_else(|_| text.to_owned());
    let beginning = beginning(&shown);
    let cut = CutResult {
        truncated: true,
        total_bytes: shown.len(),
        note: CUT_NOTE.to_owned(),
        execution_id: execution_id.to_owned(),
        next_offset_bytes: beginning.len(),
        text: beginning.to_owned(),
    };
    // The store keeps the whole result as text, which is cut at the note's offset.
    (Json::of(&cut), Some(Json::of(&shown)))
}

/// Encodes a result that the store cannot hold as JSON ([`Json::made_storable`]) in base64, with its media type.
fn storable(result: Json) -> Json {
    if result.made_storable().is_none() {
        return result;
    }
    let data = STANDARD.encode(result.as_str());
    Json::of(&json!({ "encoding": "base64", "type": "application/json", "data": data }))
}

#[cfg(test)]
mod tests {
    use everturn_proto::words::READ_RESULT_TOOL;

    use super::*;

    fn output(result: &impl serde::Serialize) -> ToolEnd {
        ToolEnd::of_result("exec_a", Json::of(result), false, 1)
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
        let shown = end.result.to_value();
        assert_eq!(
            (
                &shown["truncated"],
                &shown["execution_id"],
                &shown["next_offset_bytes"]
            ),
            (
                &json!(true),
                &json!("exec_a"),
                &json!(TOOL_RESULT_INLINE_BYTES)
            )
        );
        assert!(
            shown["note"]
                .as_str()
                .unwrap()
                .contains(&format!("`{READ_RESULT_TOOL}`"))
        );
        let rows = json!({"rows": ["x".repeat(TOOL_RESULT_INLINE_BYTES)], "count": 1});
        let whole = output(&rows).full_result.unwrap().decode::<String>();
        assert_eq!(whole.unwrap(), rows.to_string(), "to the letter");
        assert_eq!(
            end.full_result.unwrap().as_str().len(),
            2 * TOOL_RESULT_INLINE_BYTES + 2
        );
    }

    fn result_of(result: Json) -> ToolResult {
        ToolResult {
            execution_id: "exec_a".into(),
            call_id: "call_a".into(),
            tool_name: "tool".into(),
            result,
            is_error: false,
        }
    }

    #[test]
    fn a_shortened_result_says_how_the_rest_is_read() {
        let mut short = result_of(Json::of(&"short"));
        short.shorten(100);
        assert_eq!(short.result.as_str(), "\"short\"");
        for (whole, text, next) in [
            (Json::of(&"ü".repeat(100)), "üüüüü", 10),
            (
                Json::of(&json!({"rows": ["x".repeat(100)]})),
                r#"{"rows":["x"#,
                0,
            ),
            (
                output(&"ü".repeat(TOOL_RESULT_INLINE_BYTES)).result,
                "üüüüü",
                10,
            ),
        ] {
            let mut result = result_of(whole);
            let most = 11;
            result.shorten(most);
            let shown: CutResult = result.result.decode().unwrap();
            assert_eq!((shown.text.as_str(), shown.next_offset_bytes), (text, next));
            assert_eq!(shown.execution_id, "exec_a");
            let once = result.clone();
            result.shorten(most);
            assert_eq!(result.result.decode::<CutResult>().unwrap().text, text);
            assert_eq!(
                result.result, once.result,
                "shortened again, it is the same"
            );
        }
    }

    #[test]
    fn numbers_that_are_long_written_out_are_kept_as_text() {
        let of = |text: &str| ToolEnd::of_result("exec_a", Json::parse(text).unwrap(), false, 1);
        let floats = format!("[{}0]", "1e300,".repeat(1000));
        let end = of(&floats);
        assert_eq!(end.result.decode::<String>().unwrap(), floats);
        assert_eq!(end.full_result, None, "it is shown whole");
        let few = "[1e300,5e-324]";
        assert_eq!(of(few).result.as_str(), few);
        let shown = of(r#"{"n":1e131071}"#).result.to_value();
        assert_eq!(shown["encoding"], "base64", "{shown}");
    }

    #[test]
    fn a_result_knows_that_it_was_cut() {
        let is_cut = |result: Json| {
            let result = ToolResult {
                execution_id: "exec_a".into(),
                call_id: "call_a".into(),
                tool_name: "read".into(),
                result,
                is_error: false,
            };
            result.is_cut()
        };
        let just_fits = "x".repeat(TOOL_RESULT_INLINE_BYTES - 2);
        assert!(!is_cut(output(&just_fits).result));
        assert!(is_cut(output(&format!("{just_fits}x")).result));
        assert!(is_cut(output(&json!({"rows": [just_fits, 1]})).result));
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
