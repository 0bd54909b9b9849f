//! Hooks: tools that run before and after a turn, without being asked for by the model.

mod after;
mod before;
mod crash;
mod lost;

use everturn_tests::model::Request;
use serde_json::Value;

/// What the results of hooks begin with.
const HEADING: &str = "# Context for this turn";

fn messages(request: &Request) -> &[Value] {
    request.body["messages"].as_array().unwrap()
}

/// The places of what hooks gave, among the messages of a request.
fn blocks(request: &Request) -> Vec<usize> {
    let messages = messages(request).iter().enumerate();
    messages
        .filter(|(_, message)| content(message).contains(HEADING))
        .map(|(place, _)| place)
        .collect()
}

fn content(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}
