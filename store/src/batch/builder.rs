//! What all kinds of batch share: number an event, take a message, observe a tool, apply plan events.

use everturn_proto::{
    Json,
    event::{AssistantMessage, Observe, PlanStepEnd, PlanStepStart, UserMessage, WorkPlan},
    ids,
    turn::{SaveRequest, ToolCall},
    words::{EventType, effect, event_type, tool_status},
};
use serde::Serialize;

use super::{
    AssistantRow, Batch, NewEvent, Snapshot, StepResults, TakenMessage, ToolRow, event_id, key,
};
use crate::{
    api::{Result, ToolEnd, ToolResult},
    error::StoreError,
};

/// Status of a work plan's step once it began.
const PLAN_STEP_RUNNING: &str = "running";

/// How a tool ends that left no end of its own.
pub(super) struct Closing<'a> {
    /// Its status, unless its outcome is unknown.
    pub(super) status: &'static str,
    /// What the model and the readers are told.
    pub(super) error: &'a str,
}

/// A batch in the making.
pub(super) struct Builder<'a> {
    request: &'a SaveRequest,
    pub(super) snapshot: &'a Snapshot,
    pub(super) batch: Batch,
}

impl<'a> Builder<'a> {
    pub(super) fn new(request: &'a SaveRequest, snapshot: &'a Snapshot) -> Result<Self> {
        let batch = Batch {
            key: key(request)?,
            last_sequence: snapshot.last_sequence,
            steps: snapshot.steps,
            ..Batch::default()
        };
        Ok(Self {
            request,
            snapshot,
            batch,
        })
    }

    pub(super) fn finish(self) -> Batch {
        self.batch
    }

    /// The agent execution and step of the request.
    pub(super) fn place(&self) -> (String, u32) {
        (self.request.agent_execution_id.clone(), self.request.step)
    }

    /// True when the execution is a sub-agent's and not the turn's own.
    pub(super) fn is_sub_agent(&self) -> bool {
        super::is_sub_agent(self.request)
    }

    /// Appends an event of the turn; gives its sequence number.
    pub(super) fn event(&mut self, event_type: &str, data: &impl Serialize) -> u32 {
        self.append(&self.request.message_id, event_type, Json::of(data))
    }

    fn append(&mut self, message_id: &str, event_type: &str, data: Json) -> u32 {
        let batch = &mut self.batch;
        // At the end of 32 bits the number repeats, and the unique key refuses it.
        batch.last_sequence = batch.last_sequence.saturating_add(1);
        batch.events.push(NewEvent {
            id: event_id(
                &self.request.conversation_id,
                &batch.key,
                batch.events.len(),
            ),
            message_id: message_id.to_owned(),
            event_type: event_type.to_owned(),
            data,
            sequence_number: batch.last_sequence,
        });
        batch.last_sequence
    }

    /// The request's step counts as made.
    pub(super) fn step_done(&mut self) {
        self.batch.steps = self.batch.steps.max(self.request.step.saturating_add(1));
    }

    /// Takes a user message into the timeline, unless it is there. The stored text wins over `content`.
    pub(super) fn user_message(&mut self, message_id: &str, content: &str) -> Result<()> {
        let new_content = match &self.snapshot.message {
            Some(stored) if !stored.is_waiting => return Ok(()),
            Some(_) => None,
            None if content.is_empty() => return Err(StoreError::not_found("message", message_id)),
            None => Some(content.to_owned()),
        };
        let text = self
            .snapshot
            .message
            .as_ref()
            .map_or(content, |stored| &stored.content);
        let data = UserMessage {
            content: text.to_owned(),
            message_id: message_id.to_owned(),
        };
        let sequence_number = self.append(message_id, event_type::USER_MESSAGE, Json::of(&data));
        self.batch.taken = Some(TakenMessage {
            id: message_id.to_owned(),
            new_content,
            sequence_number,
        });
        self.batch.new_messages += 1;
        Ok(())
    }

    /// The assistant's final text: event and row, counted as a message (B8) unless it is a sub-agent's.
    pub(super) fn assistant_message(&mut self, text: &str, partial: bool) {
        let (agent_execution_id, step) = self.place();
        let message_id = ids::assistant_message_id(&agent_execution_id, step);
        let data = AssistantMessage {
            content: text.to_owned(),
            message_id,
            agent_execution_id,
            step,
            partial,
        };
        let sequence = self.event(event_type::ASSISTANT_MESSAGE, &data);
        self.assistant_row(text, Vec::new(), sequence);
        self.batch.new_messages += u32::from(!self.is_sub_agent());
    }

    /// The assistant's row in `messages` for the request's step.
    pub(super) fn assistant_row(
        &mut self,
        text: &str,
        tool_calls: Vec<ToolCall>,
        sequence_number: u32,
    ) {
        let (agent_execution_id, step) = self.place();
        self.batch.assistant = Some(AssistantRow {
            id: ids::assistant_message_id(&agent_execution_id, step),
            step,
            content: text.to_owned(),
            tool_calls,
            tool_results: Vec::new(),
            sequence_number,
        });
    }

    /// Closes an act: the tool's own events, its observe, its result in the assistant's row. A tool that left no
    /// end is ended here. One that is already observed is left alone.
    pub(super) fn observe(&mut self, tool: &ToolRow, closing: &Closing) -> Result<()> {
        if tool.observed_sequence.is_some() {
            return Ok(());
        }
        let mut tool = tool.clone();
        let end = tool.record.end.get_or_insert_with(|| {
            let (status, result) = close(&tool.record.call, &tool.record.status, closing);
            let events = Vec::new();
            ToolEnd {
                status,
                result,
                full_result: None,
                is_error: true,
                duration_ms: 0,
                events,
            }
        });
        tool.record.status.clone_from(&end.status);
        for (event_type, data) in &end.events {
            self.tool_event(event_type, data);
        }
        let call = &tool.record.call;
        let sequence = self.event(
            event_type::OBSERVE,
            &Observe {
                execution_id: call.execution_id.clone(),
                tool_name: call.tool_name.clone(),
                result: Some(end.result.clone()),
                call_id: call.call_id.clone(),
                duration_ms: end.duration_ms,
                is_error: end.is_error,
                agent_execution_id: self.request.agent_execution_id.clone(),
                step: tool.step,
            },
        );
        let result = ToolResult {
            execution_id: call.execution_id.clone(),
            call_id: call.call_id.clone(),
            tool_name: call.tool_name.clone(),
            result: end.result.clone(),
            is_error: end.is_error,
        };
        self.add_result(tool.step, result)?;
        tool.observed_sequence = Some(sequence);
        self.batch.observed_tools.push(tool);
        Ok(())
    }

    /// Puts a result into its step's assistant row, in call order.
    fn add_result(&mut self, step: u32, result: ToolResult) -> Result<()> {
        let execution = &self.request.agent_execution_id;
        let row = self.snapshot.assistants.iter().find(|row| row.step == step);
        let row = row.ok_or_else(|| {
            StoreError::Corrupt(format!("step {step} of `{execution}` has tools but no row"))
        })?;
        let place = self
            .batch
            .results
            .iter()
            .position(|results| results.assistant_message_id == row.id);
        let place = place.unwrap_or_else(|| {
            let tool_results = row.tool_results.clone();
            self.batch.results.push(StepResults {
                assistant_message_id: row.id.clone(),
                tool_results,
            });
            self.batch.results.len() - 1
        });
        let results = &mut self.batch.results[place].tool_results;
        results.push(result);
        results.sort_by_key(|result| {
            row.tool_calls
                .iter()
                .position(|call| call.execution_id == result.execution_id)
        });
        Ok(())
    }

    /// An event that a tool emitted itself; those about work plans change the plan's row too. What only the runtime may
    /// append is left out: a tool that emitted it could forge a turn's end.
    fn tool_event(&mut self, event_type: &str, data: &Json) {
        if !EventType::from(event_type).may_be_emitted_by_tools() {
            return;
        }
        self.append(&self.request.message_id, event_type, data.clone());
        // Data that does not fit is a tool's mistake: readers see the event, the plan stays as it is.
        match event_type {
            event_type::WORK_PLAN => {
                if let Ok(plan) = data.decode::<WorkPlan>() {
                    match self
                        .batch
                        .plans
                        .iter_mut()
                        .find(|known| known.plan_id == plan.plan_id)
                    {
                        Some(known) => *known = plan,
                        None => self.batch.plans.push(plan),
                    }
                }
            }
            event_type::STEP_START => {
                if let Ok(start) = data.decode::<PlanStepStart>() {
                    self.plan_step(&start.plan_id, start.step_number, PLAN_STEP_RUNNING);
                }
            }
            event_type::STEP_END => {
                if let Ok(end) = data.decode::<PlanStepEnd>() {
                    self.plan_step(&end.plan_id, end.step_number, &end.status);
                }
            }
            _ => {}
        }
    }

    fn plan_step(&mut self, plan_id: &str, step_number: u32, status: &str) {
        if !self.batch.plans.iter().any(|plan| plan.plan_id == plan_id) {
            let stored = self
                .snapshot
                .plans
                .iter()
                .find(|plan| plan.plan_id == plan_id);
            self.batch.plans.extend(stored.cloned());
        }
        let plan = self
            .batch
            .plans
            .iter_mut()
            .find(|plan| plan.plan_id == plan_id);
        let step = plan.and_then(|plan| {
            plan.steps
                .iter_mut()
                .find(|step| step.step_number == step_number)
        });
        if let Some(step) = step {
            status.clone_into(&mut step.status);
        }
    }
}

/// Status and result of a tool that left no end. A `once` tool that had begun may have had its effect.
fn close(call: &ToolCall, status: &str, closing: &Closing) -> (String, Json) {
    let may_repeat = matches!(call.effect.as_str(), effect::READ | effect::IDEMPOTENT);
    if status == tool_status::RUNNING && !may_repeat {
        let error = format!("{}; whether it took effect is unknown", closing.error);
        return (tool_status::UNKNOWN.into(), error_result(&error));
    }
    (closing.status.into(), error_result(closing.error))
}

fn error_result(error: &str) -> Json {
    Json::of(&serde_json::json!({ "error": error }))
}
