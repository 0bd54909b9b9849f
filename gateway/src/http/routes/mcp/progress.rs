//! The progress of a turn in a few words, for the person who waits at the client.

use everturn_proto::words::EventType;
use everturn_stream::Notice;
use serde_json::Value;

use crate::live::LiveFrame;

/// The most characters of a text in a progress message.
const MAX_CHARS: usize = 200;

/// Returns the progress that a frame tells; `None` for a frame without news for a waiting person.
pub(super) fn of_frame(frame: &LiveFrame) -> Option<String> {
    let event = match frame {
        LiveFrame::Event(event) => event,
        LiveFrame::TextStart(_) => return Some("The model writes.".to_owned()),
        LiveFrame::Notice(Notice::ModelWaits(wait)) => {
            return Some(format!("Waits for the provider: {}", short(&wait.message)));
        }
        LiveFrame::Notice(Notice::ToolWorks(progress)) if !progress.message.is_empty() => {
            let (tool, message) = (short(&progress.tool_name), short(&progress.message));
            return Some(format!("`{tool}`: {message}"));
        }
        _ => return None,
    };
    let data = event.event_data.as_ref()?.to_value();
    let text = |key: &str| {
        data.get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    match event.event_type() {
        EventType::UserMessage => Some("The turn has begun.".to_owned()),
        EventType::Thought => text("thought").map(short),
        EventType::Act => match text("title") {
            Some(title) => Some(short(title)),
            None => text("tool_name").map(|tool| format!("Calls `{}`.", short(tool))),
        },
        EventType::ApprovalRequested => text("tool_name")
            .map(|tool| format!("Waits for a person to approve `{}`.", short(tool))),
        EventType::ClientToolRequested => {
            text("tool_name").map(|tool| format!("Waits for a client to run `{}`.", short(tool)))
        }
        EventType::SubAgentStart => {
            text("agent").map(|agent| format!("Delegates to `{}`.", short(agent)))
        }
        _ => None,
    }
}

fn short(text: &str) -> String {
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(MAX_CHARS).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}
