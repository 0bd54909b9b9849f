//! The result of a turn as the result of a call.

use everturn_proto::{
    event::Event,
    words::{AgentExecutionStatus, EventType},
};
use everturn_store::TurnState;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};

use super::task_id::TaskId;
use crate::http::problem::Problem;

/// The code of a call that is answered before its turn has ended.
const STILL_RUNNING: &str = "turn_running";

/// Fields of the event that ends a turn, as the result repeats them.
const OF_END: [&str; 4] = ["usage", "cost_usd", "output", "finish"];

/// Returns the result of a call whose turn has ended; `None` for a turn that has not ended.
pub(super) fn of_turn(task: &TaskId, state: &TurnState) -> Option<Value> {
    let TurnState::Ended {
        status,
        error_code,
        error_message,
        events,
        ..
    } = state
    else {
        return None;
    };
    let find = |is_wanted: fn(&Event) -> bool| {
        let event = events.iter().find(|event| is_wanted(event))?;
        event
            .event_data
            .as_ref()
            .map(everturn_proto::Json::to_value)
    };
    let answer = find(|event| event.event_type() == EventType::AssistantMessage);
    let end = find(|event| event.event_type().ends_agent_execution()).unwrap_or_default();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let answer = answer
        .and_then(|answer| text(&answer, "content"))
        .unwrap_or_default();
    let mut facts = Facts::new(task, status.as_str());
    for field in OF_END {
        facts.add(field, end.get(field).cloned());
    }
    let failure = match status {
        AgentExecutionStatus::Completed => None,
        AgentExecutionStatus::Cancelled => {
            let reason = text(&end, "reason").unwrap_or_default();
            Some(("cancelled".to_owned(), reason))
        }
        _ => Some((
            error_code.clone().unwrap_or_default(),
            text(&end, "message")
                .or_else(|| error_message.clone())
                .unwrap_or_default(),
        )),
    };
    Some(facts.result(answer, failure))
}

/// Returns the result of a call that is answered before its turn has ended, after the longest wait.
pub(super) fn still_running(task: &TaskId) -> Value {
    let message = "The agent still works. Call the tool again with the same idempotency key to wait on, or read the \
                   conversation later.";
    let failure = (STILL_RUNNING.to_owned(), message.to_owned());
    Facts::new(task, "running").result(String::new(), Some(failure))
}

/// Returns the result of a call with wrong arguments, which the model can correct.
pub(super) fn of_problem(problem: &Problem) -> Value {
    let code = problem.code().as_str().to_owned();
    let facts = Facts(Map::new());
    facts.result(String::new(), Some((code, problem.detail().to_owned())))
}

/// The structured content of a result.
struct Facts(Map<String, Value>);

impl Facts {
    fn new(task: &TaskId, status: &str) -> Self {
        let mut facts = Self(Map::new());
        facts.add("status", Some(status.into()));
        facts.add("conversation", Some(task.conversation.as_str().into()));
        facts.add("message_id", Some(task.message_id.as_str().into()));
        facts
    }

    fn add(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// Makes the result. The text stands in both forms of the content, because some clients read only one form.
    fn result(mut self, answer: String, failure: Option<(String, String)>) -> Value {
        let mut texts = Vec::new();
        let is_error = failure.is_some();
        if let Some((code, message)) = failure {
            texts.push(ContentBlock::text(format!("{code}: {message}")));
            self.add("code", Some(code.into()));
            self.add("message", Some(message.into()));
        }
        if !answer.is_empty() || !is_error {
            texts.push(ContentBlock::text(answer.as_str()));
            self.add("answer", Some(answer.into()));
        }
        let mut result = if is_error {
            CallToolResult::error(texts)
        } else {
            CallToolResult::success(texts)
        };
        result.structured_content = Some(Value::Object(self.0));
        serde_json::to_value(result).unwrap_or_default()
    }
}
