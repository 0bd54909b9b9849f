//! The first item made from an event, before later events change the item.

use serde_json::Value;

use super::{
    calls::{
        Approval, CallResult, CallState, Question, SubAgent, SubAgentState, ToolCall, ToolResult,
    },
    fields::Fields,
    items::{Citation, End, EndKind, ItemKind, PlanStep, WorkPlan},
};
use crate::words::{ApprovalState, FinishReason, NoteEvent};

/// Fields of every event, which a note leaves out.
const ENVELOPE: [&str; 5] = [
    "type",
    "conversation_id",
    "message_id",
    "sequence_number",
    "created_at",
];

/// Returns the item of an event; `None` for an event that changes other items or is not shown.
pub(super) fn kind_of(event_type: &str, data: Fields<'_>) -> Option<ItemKind> {
    if let Some(outcome) = EndKind::of(event_type) {
        return Some(ItemKind::End(Box::new(end(outcome, data))));
    }
    match event_type {
        "user_message" => Some(ItemKind::UserMessage {
            content: data.text("content").to_owned(),
            attachments: data.value("attachments"),
            retry_of: data.owned_id("retry_of"),
        }),
        "thought" => thought(data),
        "act" => Some(ItemKind::ToolCall(Box::new(call(data)))),
        "assistant_message" => Some(ItemKind::AssistantMessage {
            content: data.text("content").to_owned(),
            partial: data.flag("partial").unwrap_or_default(),
            finish: data.id("finish").map(FinishReason::from),
            citations: citations(data),
        }),
        _ => note(NoteEvent::from(event_type), data),
    }
}

fn thought(data: Fields<'_>) -> Option<ItemKind> {
    let is_blank = |text: &str| text.chars().all(char::is_whitespace);
    let content = data.text("thought").to_owned();
    let reasoning = data.owned_id("reasoning").filter(|text| !is_blank(text));
    let has_words = !is_blank(&content) || reasoning.is_some();
    has_words.then(|| ItemKind::Thought {
        content,
        reasoning,
        citations: citations(data),
    })
}

/// Returns the sources that a text cites. An entry that is no object is left out.
fn citations(data: Fields<'_>) -> Option<Vec<Citation>> {
    let list = data.get("citations")?.as_array()?.iter();
    let entries = list.filter_map(Value::as_object).map(Fields);
    let citation = |entry: Fields<'_>| Citation {
        url: entry.owned_id("url"),
        title: entry.owned_id("title"),
        text: entry.owned_id("text"),
    };
    Some(entries.map(citation).collect())
}

fn note(event: NoteEvent, data: Fields<'_>) -> Option<ItemKind> {
    match event {
        NoteEvent::ContextCompacted
        | NoteEvent::ModelFallback
        | NoteEvent::OutcomeProbed
        | NoteEvent::OutcomeSettled
        | NoteEvent::PatternMatch
        | NoteEvent::SkillMatched
        | NoteEvent::SkillExecutionStart
        | NoteEvent::SkillExecutionComplete => {
            let own = data.0.iter();
            let own = own.filter(|(name, _)| !ENVELOPE.contains(&name.as_str()));
            let data = own.map(|(name, value)| (name.clone(), value.clone()));
            Some(ItemKind::Note {
                event,
                data: data.collect(),
            })
        }
        NoteEvent::Unknown(_) => None,
    }
}

fn call(data: Fields<'_>) -> ToolCall {
    ToolCall {
        tool_name: data.text("tool_name").to_owned(),
        title: data.owned_id("title"),
        tool_input: data.get("tool_input").cloned().unwrap_or_default(),
        execution_id: data.owned_id("execution_id"),
        call_id: data.owned_id("call_id"),
        hook: data.owned_id("hook"),
        state: CallState::Running,
        result: None,
        approval: None,
        client_tool: None,
        sub_agent: None,
    }
}

fn end(outcome: EndKind, data: Fields<'_>) -> End {
    End {
        outcome,
        code: data.owned_id("code"),
        message: data.owned_id("message"),
        reason: data.owned_id("reason"),
        finish: data.id("finish").map(FinishReason::from),
        steps: data.count("steps"),
        usage: data.value("usage"),
        cost_usd: data.owned_id("cost_usd"),
        output: data.value("output"),
    }
}

/// Returns the result in an `observe`, for its call.
pub(super) fn result(data: Fields<'_>, sequence_number: u64, timestamp: i64) -> CallResult {
    CallResult {
        tool_output: output(data),
        is_error: data.flag("is_error").unwrap_or_default(),
        duration_ms: data.count("duration_ms"),
        result_sequence_number: sequence_number,
        result_timestamp: timestamp,
    }
}

/// Returns the item for an `observe` whose call is unknown.
pub(super) fn unpaired(data: Fields<'_>) -> ToolResult {
    ToolResult {
        tool_name: data.text("tool_name").to_owned(),
        tool_output: output(data),
        is_error: data.flag("is_error").unwrap_or_default(),
        outcome_unknown: is_unknown(data),
        execution_id: data.owned_id("execution_id"),
        call_id: data.owned_id("call_id"),
        duration_ms: data.count("duration_ms"),
    }
}

/// Returns the state of a call after its `observe`.
pub(super) fn state_of(data: Fields<'_>) -> CallState {
    if is_unknown(data) {
        CallState::Unknown
    } else if data.flag("is_error").unwrap_or_default() {
        CallState::Failed
    } else {
        CallState::Done
    }
}

/// Returns true when the tool was cut off and may have had its effect.
fn is_unknown(data: Fields<'_>) -> bool {
    data.flag("outcome_unknown").unwrap_or_default()
}

/// Returns the output of a tool. The events of the first design named the field `observation`.
fn output(data: Fields<'_>) -> Value {
    let output = data.get("result").or_else(|| data.get("observation"));
    output.cloned().unwrap_or_default()
}

/// Returns the approval requested by an `approval_requested`.
pub(super) fn requested(data: Fields<'_>) -> Approval {
    Approval {
        input_hash: data.owned_id("input_hash"),
        expires_at: data.owned_id("expires_at"),
        input_text: data.owned_id("input_text"),
        approval_by: data.owned_id("approval_by"),
        question: data
            .get("question")
            .and_then(Value::as_object)
            .map(|question| question_of(Fields(question))),
        ..Approval::in_state(ApprovalState::Pending)
    }
}

/// Returns the question of a running tool.
fn question_of(data: Fields<'_>) -> Question {
    Question {
        message: data.text("message").to_owned(),
        schema: data.object("schema"),
        url: data.owned_id("url"),
    }
}

/// Returns the approval after an `approval_resolved`. The known events may begin after the request.
pub(super) fn resolved(data: Fields<'_>, before: Option<Approval>) -> Approval {
    let state = ApprovalState::from(data.text("decision"));
    let before = before.unwrap_or_else(|| Approval::in_state(state.clone()));
    Approval {
        state,
        edited: data.flag("edited").or(before.edited),
        remember: data.flag("remember").or(before.remember),
        reason: data.owned_id("reason").or(before.reason),
        resolved_by: data.owned_id("resolved_by").or(before.resolved_by),
        input_text: data.owned_id("input_text").or(before.input_text),
        answer: data.object("answer").or(before.answer),
        ..before
    }
}

/// Returns the sub-agent that a `sub_agent_start` begins.
pub(super) fn sub_agent(data: Fields<'_>) -> SubAgent {
    SubAgent {
        agent_execution_id: data.text("agent_execution_id").to_owned(),
        agent: data.text("agent").to_owned(),
        task: data.text("task").to_owned(),
        depth: data.count("depth"),
        state: SubAgentState::Running,
    }
}

/// Returns the plan of a `work_plan`.
pub(super) fn work_plan(data: Fields<'_>) -> WorkPlan {
    let steps = data.get("steps").and_then(Value::as_array);
    let steps = steps.into_iter().flatten().filter_map(Value::as_object);
    let step = |step: Fields<'_>| {
        Some(PlanStep {
            step_number: step.count("step_number")?,
            description: step.text("description").to_owned(),
            status: step.text("status").into(),
        })
    };
    WorkPlan {
        plan_id: data.owned_id("plan_id"),
        title: data.text("title").to_owned(),
        steps: steps.filter_map(|fields| step(Fields(fields))).collect(),
    }
}
