//! A request as a script sees it, whatever wire it came on.

use std::time::Instant;

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::Wire;

/// A request as the script sees it.
#[derive(Debug, Clone)]
pub struct Request {
    /// Counts the requests to this model, from 1.
    pub number: usize,
    /// The wire that it came on.
    pub wire: Wire,
    /// The body of the request.
    pub body: Value,
    /// The API key of who asks.
    pub key: String,
    /// All headers.
    pub headers: HeaderMap,
    /// When all of it was there.
    pub arrived: Instant,
}

impl Request {
    /// Returns the text of the last message with this role.
    pub fn last(&self, role: &str) -> String {
        let messages = self.messages();
        let found = messages
            .iter()
            .rev()
            .find(|message| message["role"] == role);
        found
            .map(|message| text_of(&message["content"]))
            .unwrap_or_default()
    }

    /// Returns the number of tool results after the last user message. A script can tell by it how far the turn is.
    pub fn results_since_user(&self) -> usize {
        self.messages()
            .iter()
            .rev()
            .take_while(|message| message["role"] != "user" || is_of_results(message))
            .filter(|m| m["role"] == "tool")
            .count()
    }

    /// The messages in the form of OpenAI's chat completions: each result of a tool is one with the role `tool`.
    fn messages(&self) -> Vec<Value> {
        let list = |key: &str| self.body[key].as_array().cloned().unwrap_or_default();
        match self.wire {
            Wire::OpenAi => list("messages"),
            Wire::Responses => list("input").into_iter().map(of_responses).collect(),
            Wire::Anthropic => list("messages")
                .iter()
                .flat_map(|message| parted(&message["role"], &message["content"], "tool_result"))
                .collect(),
            Wire::Gemini => list("contents")
                .iter()
                .flat_map(|message| parted(&message["role"], &message["parts"], "functionResponse"))
                .collect(),
        }
    }
}

fn of_responses(item: Value) -> Value {
    if item["type"] == "function_call_output" {
        return json!({"role": "tool", "content": item["output"]});
    }
    item
}

/// A message whose parts may be results: each of these is a message, and so are the other parts together.
fn parted(role: &Value, content: &Value, result: &str) -> Vec<Value> {
    let Some(parts) = content.as_array() else {
        return vec![json!({"role": role, "content": content})];
    };
    let is_result = |part: &&Value| part["type"] == *result || !part[result].is_null();
    let (results, others): (Vec<&Value>, Vec<&Value>) = parts.iter().partition(is_result);
    let results = results.iter();
    let mut messages: Vec<_> = results
        .map(|part| json!({"role": "tool", "content": part}))
        .collect();
    if !others.is_empty() {
        messages.push(json!({"role": role, "content": others}));
    }
    messages
}

/// True for the message that follows results which name files: it stands for no user.
fn is_of_results(message: &Value) -> bool {
    text_of(&message["content"]).starts_with("(The files that the results")
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}
