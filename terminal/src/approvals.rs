//! `everturn approvals`: lists the calls of all conversations that wait for an approval.

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{options::ApprovalsOptions, show, table::left};

/// Prints the calls. A note on standard error says when more calls wait.
pub async fn run(options: ApprovalsOptions) -> anyhow::Result<ExitCode> {
    let client = options.gateway.client()?;
    let (found, is_all) = client.waiting_approvals(options.limit).await?;
    let now = Utc::now();
    let text: String = found
        .iter()
        .map(|call| {
            if options.json {
                format!("{call}\n")
            } else {
                lines(call, now)
            }
        })
        .collect();
    show::is_closed(write!(stdout(), "{text}"))?;
    if found.is_empty() && !options.json {
        eprintln!("no call waits for you");
    }
    if !is_all {
        eprintln!("more calls wait; raise --limit ({})", options.limit);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the lines of a call: the deadline, the agent, the conversation and the call, and then the input as the store
/// keeps the input.
fn lines(call: &Value, now: DateTime<Utc>) -> String {
    let text = |field: &str| show::printable(call[field].as_str().unwrap_or_default());
    let deadline = DateTime::parse_from_rfc3339(&text("expires_at"));
    let deadline = deadline.map_or_else(|_| String::new(), |at| left(at.to_utc(), now));
    let tool = match call["title"].as_str() {
        Some(title) => format!("{} ({})", show::printable(title), text("tool_name")),
        None => text("tool_name"),
    };
    let rule = match call["approval_by"].as_str() {
        Some(_) => "  needs another person",
        None => "",
    };
    let (agent, conversation) = (text("agent"), text("conversation_id"));
    let head = format!("{deadline}  {agent}  {conversation}  {tool}{rule}\n");
    let input = match call["question"]["message"].as_str() {
        Some(message) => format!("    asks: {}\n", show::printable(message)),
        None => format!("    {}\n", text("input_text")),
    };
    let proposals = call["proposals"].as_array().into_iter().flatten();
    let proposals = proposals.map(|proposal| {
        let text = |field: &str| show::printable(proposal[field].as_str().unwrap_or_default());
        let (person, input) = (text("proposed_by"), text("input_text"));
        format!("    {person} proposes {input}\n")
    });
    [head, input].into_iter().chain(proposals).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_shows_its_deadline_and_its_very_input() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let call = json!({
            "conversation_id": "order-7", "agent": "support", "tool_name": "refund", "title": "Refund \u{1b}[2J",
            "expires_at": "2026-11-21T14:30:00.000Z", "approval_by": "other",
            "input_text": r#"{"amount":12345678901234567890123,"id":9007199254740993}"#,
            "proposals": [{"proposed_by": "bob", "input_text": r#"{"amount":1.50}"#}],
        });
        assert_eq!(
            lines(&call, now),
            "2 h left  support  order-7  Refund ⟨1B⟩[2J (refund)  needs another person\n    \
             {\"amount\":12345678901234567890123,\"id\":9007199254740993}\n    \
             bob proposes {\"amount\":1.50}\n"
        );
    }
}
