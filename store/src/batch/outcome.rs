//! The outcome of a tool call with an unknown outcome, as a person says: the event, and the result for the model
//! instead of "unknown".

use everturn_proto::{
    Json,
    event::OutcomeSettled,
    words::{EventType, ToolOutcome, ToolStatus},
};
use serde::Serialize;

use super::builder::Builder;
use crate::{
    api::{PersonsOutcome, Result, ToolEnd},
    error::{Missing, StoreError},
};

/// The result of a call that a person says has happened, for the model.
#[derive(Serialize)]
struct Happened<'a> {
    outcome: &'a str,
    note: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    comment: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Json>,
}

/// The words for the model about a call that has happened.
const HAPPENED: &str = "The outcome of the call was unknown. A person has said since that the call happened. Do not make \
                        the call again.";
/// The words for the model about a call that has not happened.
const NOT_HAPPENED: &str = "The outcome of the call was unknown. A person has said since that the call did not happen and \
                            had no effect. Call the tool again if you still need it.";

impl Builder<'_> {
    /// Settles the outcome of a call. A call without a record, without an observe or with a known outcome stays unchanged.
    pub(super) fn settle(&mut self, settled: &PersonsOutcome) -> Result<()> {
        let id = &settled.execution_id;
        let tool = self.snapshot.tool(id);
        let mut tool = tool
            .cloned()
            .ok_or_else(|| StoreError::not_found(Missing::ToolExecution, id))?;
        if tool.record.status != ToolStatus::OutcomeUnknown || tool.observed_sequence.is_none() {
            return Ok(());
        }
        let call = &tool.record.call;
        let event = OutcomeSettled {
            execution_id: id.clone(),
            tool_name: call.tool_name.clone(),
            call_id: call.call_id.clone(),
            outcome: (&settled.outcome).into(),
            result: settled.result.as_ref().map(|it| shown_result(id, it)),
            comment: settled.comment.clone(),
            settled_by: settled.settled_by.clone(),
            agent_execution_id: self.agent_execution_id(),
            step: tool.step,
        };
        self.event(EventType::OutcomeSettled, &event);
        self.add_step(tool.step)?;
        let known = tool.record.end.take();
        let end = end_of(settled, known.as_ref().map_or(0, |end| end.duration_ms));
        tool.record.status = end.status.clone();
        tool.record.end = Some(end);
        self.batch.settled_tool = Some(tool);
        Ok(())
    }
}

/// Returns the part of a person's result that the event shows. Equal results always get equal parts.
pub fn shown_result(execution_id: &str, result: &Json) -> Json {
    ToolEnd::of_result(execution_id, result.clone(), false, 0).result
}

/// Returns the end of the call, with the result for the model.
fn end_of(settled: &PersonsOutcome, duration_ms: u32) -> ToolEnd {
    let comment = settled.comment.as_str();
    match settled.outcome {
        ToolOutcome::Happened => {
            let result = Happened {
                outcome: settled.outcome.as_str(),
                note: HAPPENED,
                comment,
                result: settled.result.as_ref(),
            };
            ToolEnd::of_result(&settled.execution_id, Json::of(&result), false, duration_ms)
        }
        ToolOutcome::NotHappened | ToolOutcome::StillUnknown | ToolOutcome::Unknown(_) => {
            let comment = if comment.is_empty() {
                String::new()
            } else {
                format!(" The person's comment: {comment}")
            };
            ToolEnd::failed(&format!("{NOT_HAPPENED}{comment}"), duration_ms)
        }
    }
}
