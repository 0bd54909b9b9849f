//! Makes items from events, in order: rules 3 to 5 of `clients/transcripts/README.md`.

use std::collections::{BTreeSet, HashMap};

use chrono::DateTime;

use super::{
    calls::{CallState, ClientTool, ToolCall},
    fields::Fields,
    items::{EndKind, Item, ItemKind, WorkPlan},
    read,
};
use crate::words::PlanStepStatus;

/// The items of the events so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    pub(super) items: Vec<Item>,
    /// The message id of the running turn.
    pub(super) turn: Option<String>,
    agents: HashMap<String, KnownAgent>,
    /// Index of the last call of every tool execution, and of the last call with a model's id.
    calls_by_tool_execution: HashMap<String, usize>,
    calls_by_id: HashMap<String, usize>,
    /// Indexes of the running calls.
    running: BTreeSet<usize>,
    plans: HashMap<String, usize>,
}

/// A known sub-agent.
#[derive(Debug)]
struct KnownAgent {
    call_id: Option<String>,
    /// Index of the sub-agent's call in the items.
    call_at: Option<usize>,
}

impl Fold {
    /// Returns true when a call waits for a person or a client.
    pub(super) fn is_waiting(&self) -> bool {
        let mut calls = self.running.iter().filter_map(|at| self.call(*at));
        calls.any(ToolCall::is_waiting)
    }

    /// Returns the id of the call that started a sub-agent; `None` for an unknown sub-agent.
    pub(super) fn parent_of(&self, agent_execution_id: &str) -> Option<&str> {
        self.agents.get(agent_execution_id)?.call_id.as_deref()
    }

    /// Takes the next event.
    pub(super) fn apply(&mut self, data: Fields<'_>, sequence_number: u64) {
        let event_type = data.text("type");
        let end = EndKind::of(event_type);
        // An answer's `message_id` is the answer's own id, not the turn's. An outcome may be settled after the turn's end.
        let shows_turn = !matches!(event_type, "assistant_message" | "outcome_settled");
        if self.turn.is_none() && shows_turn && end.is_none() {
            self.turn = data.owned_id("message_id");
        }
        let timestamp = DateTime::parse_from_rfc3339(data.text("created_at"));
        let timestamp = timestamp.map_or(0, |time| time.timestamp_millis());
        if event_type == "outcome_settled" {
            self.settle(data);
        }
        if let Some(kind) = read::kind_of(event_type, data) {
            self.push(data, sequence_number, timestamp, kind);
        } else {
            self.change(event_type, data, sequence_number, timestamp);
        }
        if let Some(end) = end {
            self.end(end, data.id("agent_execution_id"));
        }
    }

    fn push(&mut self, data: Fields<'_>, sequence_number: u64, timestamp: i64, kind: ItemKind) {
        let event_type = data.text("type");
        let agent = data.id("agent_execution_id");
        let known = agent.and_then(|agent| self.agents.get(agent));
        let message_id = data.owned_id("message_id");
        let of_turn = message_id
            .clone()
            .filter(|_| event_type != "assistant_message");
        let turn = self.turn.clone().or(of_turn);
        let own_id = match kind {
            ItemKind::UserMessage { .. } => message_id,
            // Answers of the first releases carry the id of their turn.
            ItemKind::AssistantMessage { .. } => message_id.filter(|id| turn.as_ref() != Some(id)),
            _ => None,
        };
        let has_step = matches!(
            kind,
            ItemKind::Thought { .. } | ItemKind::ToolCall(_) | ItemKind::AssistantMessage { .. }
        );
        let at = self.items.len();
        match &kind {
            ItemKind::ToolCall(call) => {
                self.running.insert(at);
                let ids = [&call.execution_id, &call.call_id];
                let maps = [&mut self.calls_by_tool_execution, &mut self.calls_by_id];
                for (map, id) in maps.into_iter().zip(ids) {
                    map.extend(id.clone().map(|id| (id, at)));
                }
            }
            ItemKind::WorkPlan(plan) => self.plans.extend(plan.plan_id.clone().map(|id| (id, at))),
            _ => {}
        }
        self.items.push(Item {
            id: own_id.unwrap_or_else(|| format!("{event_type}-{sequence_number}")),
            sequence_number,
            timestamp,
            turn,
            step: data.count("step").filter(|_| has_step),
            agent_execution_id: agent.filter(|_| known.is_some()).map(str::to_owned),
            parent_tool_call_id: known.and_then(|known| known.call_id.clone()),
            kind,
        });
    }

    /// Takes an event that changes earlier items.
    fn change(&mut self, event_type: &str, data: Fields<'_>, sequence_number: u64, timestamp: i64) {
        match event_type {
            "observe" => self.observe(data, sequence_number, timestamp),
            "approval_requested" => {
                if let Some(call) = self.call_of(data) {
                    call.approval = Some(read::requested(data));
                }
            }
            "approval_resolved" => {
                let Some(call) = self.call_of(data) else {
                    return;
                };
                let before = call.approval.take();
                call.approval = Some(read::resolved(data, before));
                let input = data.get("tool_input");
                if let Some(input) = input.filter(|_| data.flag("edited") == Some(true)) {
                    call.tool_input = input.clone();
                    call.title = data.owned_id("title");
                }
            }
            "client_tool_requested" => {
                if let Some(call) = self.call_of(data) {
                    call.client_tool = Some(ClientTool {
                        expires_at: data.owned_id("expires_at"),
                    });
                }
            }
            "sub_agent_start" => self.start_agent(data),
            "work_plan" => self.plan(data, sequence_number, timestamp),
            "step_start" => self.set_plan_step(data, Some(PlanStepStatus::Running)),
            "step_end" => self.set_plan_step(data, data.id("status").map(PlanStepStatus::from)),
            _ => {}
        }
    }

    fn observe(&mut self, data: Fields<'_>, sequence_number: u64, timestamp: i64) {
        let at = match data.id("execution_id") {
            Some(id) => self.calls_by_tool_execution.get(id).copied(),
            None => self.first_of_name(data.text("tool_name")),
        };
        let result = read::result(data, sequence_number, timestamp);
        if let Some(at) = at
            && let Some(call) = self.call_mut(at)
            && call.result.is_none()
        {
            call.state = read::state_of(data);
            call.result = Some(result);
            self.running.remove(&at);
            return;
        }
        let unpaired = Box::new(read::unpaired(data));
        self.push(
            data,
            sequence_number,
            timestamp,
            ItemKind::ToolResult(unpaired),
        );
    }

    /// Returns the first running call without an execution id, as in events of the first releases.
    fn first_of_name(&self, tool_name: &str) -> Option<usize> {
        let is_it = |call: &ToolCall| call.execution_id.is_none() && call.tool_name == tool_name;
        let mut running = self.running.iter().copied();
        running.find(|at| self.call(*at).is_some_and(is_it))
    }

    /// A person says how a call with an unknown outcome did.
    fn settle(&mut self, data: Fields<'_>) {
        let state = match data.text("outcome") {
            "happened" => CallState::Done,
            _ => CallState::Failed,
        };
        let call = self.call_of(data);
        let is_unknown =
            |call: &&mut ToolCall| call.state == CallState::Unknown && call.result.is_some();
        if let Some(call) = call.filter(is_unknown) {
            call.state = state;
        }
    }

    fn start_agent(&mut self, data: Fields<'_>) {
        let Some(agent) = data.owned_id("agent_execution_id") else {
            return;
        };
        let call_id = data.owned_id("call_id");
        let call_at = match (data.id("execution_id"), &call_id) {
            (Some(execution), _) => self.calls_by_tool_execution.get(execution),
            (None, Some(call)) => self.calls_by_id.get(call),
            (None, None) => None,
        };
        let call_at = call_at.copied();
        if let Some(call) = call_at.and_then(|at| self.call_mut(at)) {
            call.sub_agent = Some(read::sub_agent(data));
        }
        self.agents.insert(agent, KnownAgent { call_id, call_at });
    }

    fn plan(&mut self, data: Fields<'_>, sequence_number: u64, timestamp: i64) {
        let plan = read::work_plan(data);
        let at = data
            .id("plan_id")
            .and_then(|id| self.plans.get(id))
            .copied();
        match at.and_then(|at| self.plan_mut(at)) {
            Some(known) => *known = plan,
            None => self.push(data, sequence_number, timestamp, ItemKind::WorkPlan(plan)),
        }
    }

    fn set_plan_step(&mut self, data: Fields<'_>, status: Option<PlanStepStatus>) {
        let at = self.plans.get(data.text("plan_id")).copied();
        let plan = at.and_then(|at| self.plan_mut(at));
        let (Some(plan), Some(status)) = (plan, status) else {
            return;
        };
        let number = data.count("step_number");
        let steps = plan.steps.iter_mut();
        for step in steps.filter(|step| Some(step.step_number) == number) {
            step.status.clone_from(&status);
        }
    }

    /// Ends a sub-agent or the turn. Calls that are still running get the state unknown.
    fn end(&mut self, end: EndKind, agent: Option<&str>) {
        let known = agent.and_then(|agent| self.agents.get(agent));
        let is_sub_agent = known.is_some();
        let call_at = known.and_then(|known| known.call_at);
        if !is_sub_agent {
            self.turn = None;
        }
        let sub_agent = call_at.and_then(|at| self.call_mut(at)?.sub_agent.as_mut());
        if let Some(sub_agent) = sub_agent {
            sub_agent.state = end.into();
        }
        let ended = |item: &Item| !is_sub_agent || item.agent_execution_id.as_deref() == agent;
        let running = self.running.iter().copied();
        let ended: Vec<_> = running.filter(|at| ended(&self.items[*at])).collect();
        for at in ended {
            self.running.remove(&at);
            if let Some(call) = self.call_mut(at) {
                call.state = CallState::Unknown;
            }
        }
    }

    fn call_of(&mut self, data: Fields<'_>) -> Option<&mut ToolCall> {
        let at = *self.calls_by_tool_execution.get(data.id("execution_id")?)?;
        self.call_mut(at)
    }

    fn call(&self, at: usize) -> Option<&ToolCall> {
        match &self.items.get(at)?.kind {
            ItemKind::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    fn call_mut(&mut self, at: usize) -> Option<&mut ToolCall> {
        match &mut self.items.get_mut(at)?.kind {
            ItemKind::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    fn plan_mut(&mut self, at: usize) -> Option<&mut WorkPlan> {
        match &mut self.items.get_mut(at)?.kind {
            ItemKind::WorkPlan(plan) => Some(plan),
            _ => None,
        }
    }
}
