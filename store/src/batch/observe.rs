//! The ends of tools: the observe of every act.

use everturn_proto::{
    Json,
    event::Observe,
    words::{EventType, ToolStatus},
};
use serde_json::json;

use super::{ObservedStep, ObservedTool, ToolRow, builder::Builder};
use crate::{
    api::{Result, ToolEnd, ToolRecord},
    error::{Missing, StoreError},
};

/// The end for a tool execution whose tool recorded no end.
pub(super) struct Closing<'a> {
    /// The status of the tool execution, unless the outcome is unknown.
    pub(super) status: ToolStatus,
    /// The error text for the model and the readers.
    pub(super) error: &'a str,
}

impl Builder<'_> {
    /// Builds the batch of one ended tool.
    pub(super) fn observe_one(&mut self, execution_id: &str, failure: Option<&str>) -> Result<()> {
        let closing = Closing {
            status: ToolStatus::Failed,
            error: failure.unwrap_or("the tool ended without a result"),
        };
        match self.snapshot.tool(execution_id) {
            Some(tool) => self.close(tool, &closing),
            None => self.observe(&self.lost_record(execution_id)?, &closing),
        }
    }

    /// Rebuilds the missing record of a call of the request's step.
    pub(super) fn lost_record(&self, execution_id: &str) -> Result<ToolRow> {
        let mut lost = self.lost_records().into_iter();
        lost.find(|tool| tool.record.call.execution_id == execution_id)
            .ok_or_else(|| StoreError::not_found(Missing::ToolExecution, execution_id))
    }

    /// Rebuilds the missing records of the request's step from the assistant's row. Whether the calls ran is unknown.
    pub(super) fn lost_records(&self) -> Vec<ToolRow> {
        let step = self.step().step;
        let Some(row) = self.snapshot.assistant(step) else {
            return Vec::new();
        };
        let calls = row.tool_calls.iter().enumerate();
        calls
            .filter(|(_, call)| {
                let id = &call.execution_id;
                self.snapshot.tool(id).is_none() && !self.snapshot.recorded.contains(id)
            })
            .map(|(index, call)| {
                let mut tool = ToolRow::pending(step, index, call.clone());
                tool.record.status = ToolStatus::Running;
                tool
            })
            .collect()
    }

    /// Closes an act: appends the tool's own events and its observe. A tool without a recorded end is ended here. A
    /// tool that is already observed stays unchanged.
    pub(super) fn observe(&mut self, tool: &ToolRow, closing: &Closing) -> Result<()> {
        if tool.observed_sequence.is_some() {
            return Ok(());
        }
        let stored = self.snapshot.tool(&tool.record.call.execution_id);
        let is_recorded = tool.record.end.is_some() && stored == Some(tool);
        let mut tool = tool.clone();
        // A rebuilt record has no attempt. Its status says that the tool may have run.
        let has_begun = tool.record.attempt > 0 || tool.record.status == ToolStatus::Running;
        let ends_run = tool.record.end.is_none() && has_begun;
        let end = match tool.record.end.take() {
            Some(end) => end,
            None => end_without_result(&tool.record, closing),
        };
        for (event_type, data) in &end.events {
            self.emitted(event_type, data);
        }
        let call = &tool.record.call;
        let observe = Observe {
            execution_id: call.execution_id.clone(),
            tool_name: call.tool_name.clone(),
            result: Some(end.result.clone()),
            call_id: call.call_id.clone(),
            duration_ms: end.duration_ms,
            is_error: end.is_error,
            agent_execution_id: self.agent_execution_id(),
            step: tool.step,
            outcome_unknown: (end.status == ToolStatus::OutcomeUnknown).then_some(true),
        };
        let sequence = self.event(EventType::Observe, &observe);
        self.add_step(tool.step)?;
        tool.record.status = end.status.clone();
        tool.record.end = Some(end);
        tool.observed_sequence = Some(sequence);
        let observed = ObservedTool {
            tool,
            is_recorded,
            ends_run,
        };
        self.batch.observed_tools.push(observed);
        Ok(())
    }

    /// Adds the step of an observed call to the batch.
    pub(super) fn add_step(&mut self, step: u32) -> Result<()> {
        let row = self.snapshot.assistant(step).ok_or_else(|| {
            let id = self.agent_execution_id();
            StoreError::Corrupt(format!("step {step} of `{id}` has tools but no row"))
        })?;
        let known = &mut self.batch.observed_steps;
        if known.iter().all(|step| step.assistant_message_id != row.id) {
            let ids = row.tool_calls.iter().map(|call| call.execution_id.clone());
            known.push(ObservedStep {
                assistant_message_id: row.id.clone(),
                execution_ids: ids.collect(),
            });
        }
        Ok(())
    }
}

/// Returns the end of a tool without a recorded end. A running tool that may not be repeated may have had its effect.
fn end_without_result(record: &ToolRecord, closing: &Closing) -> ToolEnd {
    let is_unknown = record.status == ToolStatus::Running && !record.call.may_run_again();
    let (status, error) = if is_unknown {
        let error = format!("{}; whether it took effect is unknown", closing.error);
        (ToolStatus::OutcomeUnknown, error)
    } else {
        (closing.status.clone(), closing.error.to_owned())
    };
    ToolEnd {
        status,
        result: Json::of(&json!({ "error": error })),
        full_result: None,
        is_error: true,
        duration_ms: 0,
        events: Vec::new(),
    }
}
