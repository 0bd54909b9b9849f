//! Helpers that read the events of a conversation as the gateway returns them: JSON, with event types as text.

use everturn_proto::words::EventType;
use serde_json::Value;

/// Returns the types of the events in their order, joined with spaces.
pub fn types(events: &[Value]) -> String {
    let types: Vec<_> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    types.join(" ")
}

/// Returns the `event_data` of all events of a type.
pub fn data<'a>(events: &'a [Value], event_type: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["event_type"] == event_type)
        .map(|event| &event["event_data"])
        .collect()
}

/// Returns the `content` of all messages of a type.
pub fn contents<'a>(events: &'a [Value], event_type: &str) -> Vec<&'a str> {
    data(events, event_type)
        .into_iter()
        .map(|data| data["content"].as_str().unwrap())
        .collect()
}

/// Returns how many events are of a type.
pub fn count(events: &[Value], event_type: &str) -> usize {
    data(events, event_type).len()
}

/// Returns the `event_data` of the first `observe` of a tool.
pub fn observe<'a>(events: &'a [Value], tool: &str) -> &'a Value {
    data(events, "observe")
        .into_iter()
        .find(|observe| observe["tool_name"] == tool)
        .unwrap_or_else(|| panic!("{tool} was not observed: {events:#?}"))
}

/// Returns the result of a tool, which must not have failed.
pub fn result<'a>(events: &'a [Value], tool: &str) -> &'a Value {
    let observe = observe(events, tool);
    assert_eq!(observe["is_error"], false, "{observe:#?}");
    &observe["result"]
}

/// Returns the error text that the model reads of a tool, which must have failed.
pub fn error<'a>(events: &'a [Value], tool: &str) -> &'a str {
    let observe = observe(events, tool);
    assert_eq!(observe["is_error"], true, "{observe:#?}");
    observe["result"]["error"].as_str().unwrap()
}

/// Asserts that the sequence numbers are 1 to n without a gap, and that no event is there twice.
pub fn assert_gap_free(events: &[Value]) {
    let numbers: Vec<_> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (1..=events.len() as u64).collect::<Vec<_>>(),
        "{events:#?}"
    );
    let mut ids: Vec<_> = events
        .iter()
        .map(|event| event["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), events.len(), "an event is there twice");
    for act in events.iter().filter(|event| event["event_type"] == "act") {
        let id = &act["event_data"]["execution_id"];
        let is_its = |event: &&Value| {
            event["event_type"] == "observe" && &event["event_data"]["execution_id"] == id
        };
        let is_last_turn_open =
            !EventType::from(events.last().unwrap()["event_type"].as_str().unwrap())
                .ends_agent_execution();
        let observes = events.iter().filter(is_its).count();
        assert!(
            observes == 1 || (observes == 0 && is_last_turn_open),
            "{observes} observes of {id}"
        );
    }
}
