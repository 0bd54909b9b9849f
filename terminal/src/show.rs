//! Formats events as lines of a terminal.

use std::{fmt::Write as _, io};

use everturn_proto::words::EventType;
use serde_json::Value;

use everturn_client::Frame;

use crate::frames::KnownFrame;

/// Longest text of one event, in characters: a line or two of a terminal.
const MAX_CHARS: usize = 160;

/// Returns the mark before numbers that Everturn has estimated, because a provider counted no tokens.
pub(crate) fn about_mark(usage: Option<&Value>) -> &'static str {
    if usage.is_some_and(|usage| usage["estimated"] == true) {
        "≈ "
    } else {
        ""
    }
}

/// Returns the line of a persisted event, or `None` for deltas and other frames without a persisted event.
pub fn line(frame: &Frame) -> Option<String> {
    let sequence = frame.id?;
    let text = about(&frame.event_type(), &frame.data);
    let text = shortened(&text);
    Some(format!("{sequence:>4}  {:<18} {text}", frame.event))
}

/// The text of a retry.
pub(crate) const RETRIED: &str = "the failed turn is tried again";

/// Returns the text of an event.
pub(crate) fn about(event_type: &EventType, data: &Value) -> String {
    match event_type {
        EventType::UserMessage if data["retry_of"].is_string() => RETRIED.to_owned(),
        EventType::UserMessage | EventType::AssistantMessage => text(&data["content"]),
        EventType::Thought => {
            let words = ["thought", "reasoning"].map(|field| text(&data[field]));
            let spoken = words.into_iter().find(|words| !words.trim().is_empty());
            spoken.unwrap_or_default()
        }
        EventType::ApprovalRequested if data["question"].is_object() => {
            let (tool, message) = (text(&data["tool_name"]), text(&data["question"]["message"]));
            format!("{tool} asks: {message}")
        }
        EventType::Act | EventType::ApprovalRequested | EventType::ClientToolRequested => {
            format!("{} {}", text(&data["tool_name"]), data["tool_input"])
        }
        EventType::Observe => {
            let is_error = data["is_error"] == true;
            let mark = if is_error { "failed: " } else { "" };
            let (tool, result) = (text(&data["tool_name"]), &data["result"]);
            format!("{tool} → {mark}{result} ({} ms)", data["duration_ms"])
        }
        EventType::ApprovalResolved => {
            let (tool, decision) = (text(&data["tool_name"]), text(&data["decision"]));
            format!("{tool} {decision} {}", text(&data["reason"]))
        }
        EventType::Complete if data["steps"] == 1 => "1 step".to_owned(),
        EventType::Complete => format!("{} steps", data["steps"]),
        EventType::Error => format!("{}: {}", text(&data["code"]), text(&data["message"])),
        EventType::Cancelled => text(&data["reason"]),
        EventType::SubAgentStart => format!("{}: {}", text(&data["agent"]), text(&data["task"])),
        EventType::ContextCompacted => match data["messages"].as_u64().unwrap_or_default() {
            1 => "a summary stands for 1 earlier message".to_owned(),
            messages => format!("a summary stands for {messages} earlier messages"),
        },
        EventType::ModelFallback => {
            let [from, to, code] = ["from", "to", "code"].map(|key| text(&data[key]));
            format!("{from} → {to}: {code}")
        }
        EventType::OutcomeProbed => {
            let [tool, outcome, probe] =
                ["tool_name", "outcome", "probe"].map(|key| text(&data[key]));
            format!("{tool} {outcome} ({probe})")
        }
        EventType::OutcomeSettled => {
            let [tool, outcome, by] =
                ["tool_name", "outcome", "settled_by"].map(|key| text(&data[key]));
            format!("{tool} {outcome} ({by})")
        }
        EventType::WorkPlan => text(&data["title"]),
        EventType::PlanStepStart | EventType::PlanStepEnd => {
            format!("step {}", data["step_number"])
        }
        EventType::SkillMatched => {
            let skill = text(&data["skill_name"]);
            format!("{skill}: {}", text(&data["description"]))
        }
        EventType::SkillExecutionStart | EventType::SkillExecutionComplete => {
            text(&data["skill_name"])
        }
        EventType::PatternMatch | EventType::Unknown(_) => String::new(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the text as a single line, shortened, without control characters.
pub fn shortened(text: &str) -> String {
    let line = text.replace(char::is_control, " ");
    let line = printable(&line);
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns text of a model, a tool or a user in a form that is safe for a terminal. Line breaks and tabs stay. Other
/// control characters, with which escape sequences begin, and characters that change the text's direction become their
/// numbers, like `⟨1B⟩`.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\n' | '\t') || !(c.is_control() || turns_around(c)) {
            printable.push(c);
        } else {
            let _never_fails = write!(printable, "⟨{:X}⟩", u32::from(c));
        }
    }
    printable
}

/// True for Unicode characters that change the direction of surrounding text, or break a line.
fn turns_around(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// True when the reader of the output has closed the pipe, as with `| head`.
pub fn is_closed(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn frame(event: &str, data: Value) -> Frame {
        Frame {
            event: event.to_owned(),
            id: Some(7),
            cursor: None,
            data,
        }
    }

    #[test]
    fn shows_what_happened() {
        let observe = json!({"tool_name": "calculate", "result": {"value": "42"}, "duration_ms": 3, "is_error": false});
        assert_eq!(
            line(&frame("observe", observe)).unwrap(),
            "   7  observe            calculate → {\"value\":\"42\"} (3 ms)"
        );
        assert!(
            line(&Frame {
                event: "text_delta".into(),
                id: None,
                cursor: None,
                data: json!({})
            })
            .is_none()
        );
    }

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        let line = line(&frame(
            "assistant_message",
            json!({"content": "a\u{1b}[2Jb\nc"}),
        ))
        .unwrap();
        assert!(!line.contains('\u{1b}') && !line.contains('\n'));
        assert_eq!(printable("a\u{1b}[2J\n\u{202e}"), "a⟨1B⟩[2J\n⟨202E⟩");
        assert_eq!(shortened("a\u{202e}\r\nb"), "a⟨202E⟩  b");
    }
}
