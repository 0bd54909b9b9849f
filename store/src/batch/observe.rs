//! How tools end: the observe of each act, and its result in the assistant's row.

use everturn_proto::{
    Json,
    event::Observe,
    words::{EventType, ToolStatus},
};
use serde_json::json;

use super::{StepResults, ToolRow, builder::Builder};
use crate::{
    api::{Result, ToolEnd, ToolRecord, ToolResult},
    error::{Missing, StoreError},
};

/// How to end a tool execution whose tool recorded no end itself.
pub(super) struct Closing<'a> {
    /// The status that it gets, unless its outcome is unknown.
    pub(super) status: ToolStatus,
    /// The error that the model and the readers are told.
    pub(super) error: &'a str,
}

impl Builder<'_> {
    /// Builds the batch of one tool that has ended.
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

    /// Makes the record of a call of the request's step anew, because its row is missing.
    pub(super) fn lost_record(&self, execution_id: &str) -> Result<ToolRow> {
        let mut lost = self.lost_records().into_iter();
        lost.find(|tool| tool.record.call.execution_id == execution_id)
            .ok_or_else(|| StoreError::not_found(Missing::ToolExecution, execution_id))
    }

    /// Makes the missing records of the request's step anew, from the assistant's row: those of calls that have neither
    /// a record nor a result. Nobody knows whether these calls ran.
    pub(super) fn lost_records(&self) -> Vec<ToolRow> {
        let step = self.step().step;
        let Some(row) = self.snapshot.assistant(step) else {
            return Vec::new();
        };
        let has_result = |id: &str| {
            row.tool_results
                .iter()
                .any(|known| known.execution_id == id)
        };
        let calls = row.tool_calls.iter().enumerate();
        calls
            .filter(|(_, call)| {
                let id = &call.execution_id;
                self.snapshot.tool(id).is_none() && !has_result(id)
            })
            .map(|(index, call)| {
                let mut tool = ToolRow::pending(step, index, call.clone());
                tool.record.status = ToolStatus::Running;
                tool
            })
            .collect()
    }

    /// Closes an act: appends the tool's own events and its observe, and puts its result into the assistant's row. A
    /// tool that recorded no end is ended here. A tool that is already observed stays as it is.
    pub(super) fn observe(&mut self, tool: &ToolRow, closing: &Closing) -> Result<()> {
        if tool.observed_sequence.is_some() {
            return Ok(());
        }
        let mut tool = tool.clone();
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
        };
        let sequence = self.event(EventType::Observe, &observe);
        let result = ToolResult {
            execution_id: call.execution_id.clone(),
            call_id: call.call_id.clone(),
            tool_name: call.tool_name.clone(),
            result: end.result.clone(),
            is_error: end.is_error,
        };
        self.add_result(tool.step, result)?;
        tool.record.status = end.status.clone();
        tool.record.end = Some(end);
        tool.observed_sequence = Some(sequence);
        self.batch.observed_tools.push(tool);
        Ok(())
    }

    /// Puts a result into its step's assistant row, in call order.
    fn add_result(&mut self, step: u32, result: ToolResult) -> Result<()> {
        let row = self.snapshot.assistant(step).ok_or_else(|| {
            let id = self.agent_execution_id();
            StoreError::Corrupt(format!("step {step} of `{id}` has tools but no row"))
        })?;
        let known = &mut self.batch.results;
        let place = known
            .iter()
            .position(|results| results.assistant_message_id == row.id)
            .unwrap_or_else(|| {
                known.push(StepResults {
                    assistant_message_id: row.id.clone(),
                    tool_results: row.tool_results.clone(),
                });
                known.len() - 1
            });
        let results = &mut known[place].tool_results;
        results.push(result);
        results.sort_by_key(|result| {
            let mut calls = row.tool_calls.iter();
            calls.position(|call| call.execution_id == result.execution_id)
        });
        Ok(())
    }
}

/// Returns the end of a tool that recorded none. A tool that had begun and may not run again may have had its effect.
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
