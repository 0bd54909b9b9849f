//! Tests of the batch: what each kind of it contains, and what holds for any order of saves and replays.

#![allow(clippy::unwrap_used)]

mod ends;
mod model;
mod observes;
mod outside;
mod property;
mod requests;
mod thoughts;

use everturn_proto::{
    Json, ids,
    turn::{LlmCompleteState, SaveApproval, ToolCall},
    words::{ApprovalState, Effect, FinishReason, ToolStatus},
};

use super::*;
use crate::{api::StepKey, error::StoreError};

/// The turn's own agent execution. Every other one is a sub-agent's.
const ROOT: &str = "run_60d47de58b20dc6c";

fn request(step: u32, save: Save) -> BatchRequest {
    let step = StepKey {
        conversation_id: "c".into(),
        message_id: "m".into(),
        agent_execution_id: ROOT.into(),
        step,
        epoch: None,
    };
    BatchRequest { step, save }
}

fn thought(step: u32) -> BatchRequest {
    request(step, Save::Thought)
}

fn observe(step: u32, execution_id: &str, failure: Option<&str>) -> BatchRequest {
    let observe = Save::Observe {
        execution_id: execution_id.into(),
        failure: failure.map(Into::into),
    };
    request(step, observe)
}

fn approval(step: u32, execution_id: &str, decision: ApprovalState) -> BatchRequest {
    let edited = Json::parse(r#"{"edited":true}"#).unwrap();
    let answer = SaveApproval {
        execution_id: execution_id.into(),
        tool_input: (decision == ApprovalState::Approved).then_some(edited),
        decision: decision.into(),
        ..SaveApproval::default()
    };
    request(step, Save::Approval(answer))
}

fn steer(message_id: &str) -> BatchRequest {
    let message = Save::UserMessage {
        message_id: message_id.into(),
        content: Some("and this".into()),
    };
    request(0, message)
}

fn end(step: u32, end: AgentExecutionEnd) -> BatchRequest {
    request(step, Save::End(end))
}

fn completed() -> AgentExecutionEnd {
    AgentExecutionEnd::Completed { hooks: None }
}

fn cancelled() -> AgentExecutionEnd {
    AgentExecutionEnd::Cancelled {
        reason: "why".into(),
    }
}

fn failed() -> AgentExecutionEnd {
    AgentExecutionEnd::Failed {
        code: "code".into(),
        message: "why".into(),
    }
}

fn call(execution_id: &str, effect: Effect) -> ToolCall {
    ToolCall {
        execution_id: execution_id.into(),
        call_id: format!("call_{execution_id}"),
        tool_name: "search".into(),
        tool_input: Some(Json::parse(r#"{"n":9007199254740993}"#).unwrap()),
        effect: effect.into(),
        ..ToolCall::default()
    }
}

fn state(text: &str, reasoning: &str, tool_calls: Vec<ToolCall>) -> LlmCompleteState {
    let finish = if tool_calls.is_empty() {
        FinishReason::Stop
    } else {
        FinishReason::ToolCalls
    };
    LlmCompleteState {
        text: text.into(),
        reasoning: reasoning.into(),
        finish: finish.into(),
        tool_calls,
        ..LlmCompleteState::default()
    }
}

fn tool(execution_id: &str, effect: Effect, status: ToolStatus) -> ToolRow {
    let mut tool = ToolRow::pending(0, 0, call(execution_id, effect));
    tool.record.status = status;
    tool.record.attempt = 1;
    tool
}

/// Returns a record that waits for an approval.
fn asked(execution_id: &str) -> ToolRow {
    let mut tool = tool(execution_id, Effect::Once, ToolStatus::Pending);
    tool.record.approval = ApprovalState::Pending;
    tool
}

fn assistant(calls: &[&str]) -> AssistantRow {
    let tool_calls = calls.iter().map(|id| call(id, Effect::Read)).collect();
    AssistantRow {
        id: ids::assistant_message_id(ROOT, 0),
        tool_calls,
        ..AssistantRow::default()
    }
}

fn types(batch: &Batch) -> Vec<&str> {
    batch
        .events
        .iter()
        .map(|event| event.event_type.as_str())
        .collect()
}

fn field(batch: &Batch, event: usize, name: &str) -> serde_json::Value {
    batch.events[event].data.to_value()[name].clone()
}
