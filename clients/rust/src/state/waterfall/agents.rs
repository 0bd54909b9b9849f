//! The rows of an agent execution: LLM calls, tool calls and notes, with the rows of sub-agents under the calls that
//! started the sub-agents.

use std::collections::HashMap;

use super::{Row, RowKind, WaitsFor};
use crate::{
    state::{
        calls::{CallState, SubAgentState, ToolCall},
        items::{End, Item, ItemKind},
    },
    words::NoteEvent,
};

/// The items by agent execution; `None` is the turn's own.
pub(super) struct Agents<'a>(HashMap<Option<&'a str>, Vec<&'a Item>>);

impl<'a> Agents<'a> {
    pub(super) fn of(items: &[&'a Item]) -> Self {
        let mut agents: HashMap<_, Vec<_>> = HashMap::new();
        for item in items {
            let agent = item.agent_execution_id.as_deref();
            agents.entry(agent).or_default().push(*item);
        }
        Self(agents)
    }

    /// Adds the rows of an agent execution, with the rows of sub-agents under the calls that started the sub-agents.
    pub(super) fn rows(
        &mut self,
        agent: Option<&'a str>,
        is_running: bool,
        depth: usize,
        started: i64,
        rows: &mut Vec<Row>,
    ) {
        // An agent execution is removed when taken, so that the recursion ends for any events.
        let items = self.0.remove(&agent).unwrap_or_default();
        let mut calls = LlmCalls {
            agent,
            depth,
            free_from: started,
            step_seen: None,
            next_step: 0,
        };
        for item in &items {
            rows.extend(calls.ended_with(item));
            match &item.kind {
                ItemKind::ToolCall(call) => {
                    let row = tool(item, call, depth);
                    calls.free_from = calls.free_from.max(row.ended.unwrap_or(item.timestamp));
                    rows.push(row);
                    if let Some(sub_agent) = &call.sub_agent {
                        let id = Some(sub_agent.agent_execution_id.as_str());
                        let runs = is_running && sub_agent.state == SubAgentState::Running;
                        self.rows(id, runs, depth + 1, item.timestamp, rows);
                    }
                }
                ItemKind::Note { event, .. } => rows.push(note(item, event.as_str(), depth)),
                _ => {}
            }
        }
        if is_running && !has_answered(&items) && !items.iter().any(|item| is_open_call(item)) {
            rows.push(calls.open(None));
        }
    }
}

/// The LLM calls of an agent execution. A call begins when the agent waits for nothing else.
struct LlmCalls<'a> {
    agent: Option<&'a str>,
    depth: usize,
    free_from: i64,
    step_seen: Option<u64>,
    next_step: u64,
}

impl LlmCalls<'_> {
    /// Returns the LLM call that ended with the item, if any.
    fn ended_with(&mut self, item: &Item) -> Option<Row> {
        let step = match &item.kind {
            // A summary is a step of its own.
            ItemKind::Note {
                event: NoteEvent::ContextCompacted,
                data,
            } => {
                let has_summary = data.get("summary").is_some_and(|summary| summary != "");
                data.get("step")?.as_u64().filter(|_| has_summary)?
            }
            ItemKind::End(end) => return self.failed_with(item, end),
            _ => item.step?,
        };
        if self.step_seen == Some(step) {
            return None;
        }
        (self.step_seen, self.next_step) = (Some(step), step.saturating_add(1));
        // The hooks before a turn have a step of their own without a model call.
        if matches!(&item.kind, ItemKind::ToolCall(call) if call.hook.is_some()) {
            return None;
        }
        let row = Row {
            step: Some(step),
            ended: Some(item.timestamp),
            state: CallState::Done,
            ..self.open(Some(item))
        };
        self.free_from = item.timestamp;
        Some(row)
    }

    /// Returns the failed LLM call that ended an agent execution. The error's code shows that a model was called.
    fn failed_with(&self, item: &Item, end: &End) -> Option<Row> {
        let has_passed = item.timestamp > self.free_from;
        (end.is_llm_error() && has_passed).then(|| Row {
            ended: Some(item.timestamp),
            state: CallState::Failed,
            ..self.open(Some(item))
        })
    }

    /// Returns the next LLM call, still running.
    fn open(&self, item: Option<&Item>) -> Row {
        Row {
            kind: RowKind::LlmCall,
            depth: self.depth,
            name: String::new(),
            agent: None,
            step: Some(self.next_step),
            agent_execution_id: self.agent.map(str::to_owned),
            execution_id: None,
            item: item.map(|item| item.id.clone()),
            started: self.free_from,
            ran_from: Some(self.free_from),
            ended: None,
            state: CallState::Running,
            waits_for: None,
        }
    }
}

fn has_answered(items: &[&Item]) -> bool {
    let last = items.last().map(|item| &item.kind);
    matches!(last, Some(ItemKind::AssistantMessage { .. }))
}

fn is_open_call(item: &Item) -> bool {
    matches!(&item.kind, ItemKind::ToolCall(call) if call.state == CallState::Running)
}

fn note(item: &Item, event: &str, depth: usize) -> Row {
    Row {
        kind: RowKind::Note,
        depth,
        name: event.to_owned(),
        agent: None,
        step: None,
        agent_execution_id: item.agent_execution_id.clone(),
        execution_id: None,
        item: Some(item.id.clone()),
        started: item.timestamp,
        ran_from: Some(item.timestamp),
        ended: Some(item.timestamp),
        state: CallState::Done,
        waits_for: None,
    }
}

fn tool(item: &Item, call: &ToolCall, depth: usize) -> Row {
    let ended = call.result.as_ref().map(|result| result.result_timestamp);
    let ran = call.result.as_ref().and_then(|result| result.duration_ms);
    let ran = ran.and_then(|ran| i64::try_from(ran).ok());
    let ran_from = match ended.zip(ran) {
        Some((ended, ran)) => Some(ended.saturating_sub(ran).max(item.timestamp)),
        None if call.has_pending_approval() || call.client_tool.is_some() => None,
        None => Some(item.timestamp),
    };
    let has_waited = ran_from.is_none_or(|from| from > item.timestamp);
    let waits_for = match call {
        _ if !has_waited => None,
        ToolCall {
            approval: Some(_), ..
        } => Some(WaitsFor::Approval),
        ToolCall {
            client_tool: Some(_),
            ..
        } => Some(WaitsFor::Client),
        _ => Some(WaitsFor::Worker),
    };
    Row {
        kind: RowKind::Tool,
        depth,
        name: call.tool_name.clone(),
        agent: call.sub_agent.as_ref().map(|it| it.agent.clone()),
        step: item.step,
        agent_execution_id: item.agent_execution_id.clone(),
        execution_id: call.execution_id.clone(),
        item: Some(item.id.clone()),
        started: item.timestamp,
        ran_from,
        ended,
        state: call.state,
        waits_for,
    }
}
