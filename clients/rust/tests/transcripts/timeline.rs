//! What `GET …/messages` answers for the same events, from a client's state.

use serde_json::{Map, Value, json};

const OF_ALL: [&str; 5] = [
    "id",
    "sequenceNumber",
    "timestamp",
    "agentExecutionId",
    "parentToolCallId",
];

/// The timeline of a state.
pub(crate) fn of(state: &Value) -> Value {
    let items = state["items"].as_array().unwrap();
    let mut entries: Vec<_> = items.iter().flat_map(entries).collect();
    entries.sort_by_key(|entry| entry["sequenceNumber"].as_u64());
    entries.into()
}

fn entries(item: &Value) -> Vec<Value> {
    let kind = item["type"].as_str().unwrap();
    let own: &[&str] = match kind {
        "user_message" => &["content", "attachments", "retryOf"],
        "thought" => &["content", "reasoning", "citations"],
        "assistant_message" => &["content", "citations"],
        "tool_call" => &["toolName", "title", "toolInput", "executionId", "callId"],
        "tool_result" => &["toolName", "toolOutput", "isError", "executionId", "callId"],
        _ => return Vec::new(),
    };
    let mut entries = vec![entry(item, kind, own)];
    if let Some(sequence) = item.get("resultSequenceNumber") {
        let own = ["toolName", "toolOutput", "isError", "executionId", "callId"];
        let mut result = entry(item, "tool_result", &own);
        result["id"] = format!("observe-{sequence}").into();
        result["sequenceNumber"] = sequence.clone();
        result["timestamp"] = item["resultTimestamp"].clone();
        entries.push(result);
    }
    entries
}

fn entry(item: &Value, kind: &str, own: &[&str]) -> Value {
    let names = OF_ALL.iter().chain(own);
    let fields = names.filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
    let mut fields: Map<String, Value> = fields.collect();
    fields.insert("type".to_owned(), json!(kind));
    fields.into()
}
