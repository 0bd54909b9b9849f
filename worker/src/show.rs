//! Events as lines of a terminal.

use serde_json::Value;

use crate::client::Frame;

/// Longest text shown of one event, in characters: a line or two of a terminal.
const MAX_CHARS: usize = 160;

/// The line of a persisted event; `None` for deltas and what this version does not know.
pub fn line(frame: &Frame) -> Option<String> {
    let sequence = frame.id?;
    let data = &frame.data;
    let text = match frame.event.as_str() {
        "user_message" | "assistant_message" => text(&data["content"]),
        "thought" => text(&data["thought"]),
        "act" => format!("{} {}", text(&data["tool_name"]), data["tool_input"]),
        "observe" => {
            let mark = if data["is_error"] == true {
                "failed: "
            } else {
                ""
            };
            format!(
                "{} → {mark}{} ({} ms)",
                text(&data["tool_name"]),
                data["result"],
                data["duration_ms"]
            )
        }
        "approval_requested" | "client_tool_requested" => {
            format!("{} {}", text(&data["tool_name"]), data["tool_input"])
        }
        "approval_resolved" => {
            format!(
                "{} {} {}",
                text(&data["tool_name"]),
                text(&data["decision"]),
                text(&data["reason"])
            )
        }
        "complete" if data["steps"] == 1 => "1 step".to_owned(),
        "complete" => format!("{} steps", data["steps"]),
        "sub_agent_start" => format!("{}: {}", text(&data["agent"]), text(&data["task"])),
        "error" => format!("{}: {}", text(&data["code"]), text(&data["message"])),
        "cancelled" => text(&data["reason"]),
        "work_plan" => text(&data["title"]),
        "skill_matched" => format!(
            "{}: {}",
            text(&data["skill_name"]),
            text(&data["description"])
        ),
        "skill_execution_start" | "skill_execution_complete" => text(&data["skill_name"]),
        "step_start" | "step_end" => format!("step {}", data["step_number"]),
        _ => String::new(),
    };
    Some(format!(
        "{sequence:>4}  {:<18} {}",
        frame.event,
        shortened(&text)
    ))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// One line, not too long, with nothing that could steer the terminal.
pub fn shortened(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Text of a model for the terminal: line breaks stay, other control characters (escape sequences) do not.
pub fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn frame(event: &str, data: Value) -> Frame {
        Frame {
            event: event.to_owned(),
            id: Some(7),
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
        assert_eq!(printable("a\u{1b}[2J\n"), "a[2J\n");
    }
}
