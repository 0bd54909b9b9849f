//! `tool_execution_activity`: a run of a `once` tool.

use everturn_proto::{
    Json,
    turn::{RunToolRequest, RunToolResult},
    words::ToolStatus,
};
use everturn_store::{ToolClaim, ToolClaims, ToolEnd, ToolKey};
use temporalio_common::protos::temporal::api::common::v1::Payload;

use super::{Result, from_store, read};
use crate::{engine::Attempt, world::World};

pub(super) async fn run_tool(
    world: &World,
    input: &Payload,
    attempt: Option<Attempt>,
) -> Result<RunToolResult> {
    let request: RunToolRequest = read(input)?;
    let key = ToolKey {
        conversation_id: request.conversation_id,
        message_id: request.message_id,
        agent_execution_id: request.agent_execution_id,
        step: request.step,
        execution_id: request.execution_id,
        epoch: request.epoch,
    };
    let claimant = attempt.map_or_else(|| "local".to_owned(), |attempt| format!("a{}", attempt.id));
    world.schedule.step("claims the tool").await;
    let claim = world.store.claim_tool(&key, &claimant).await;
    let end = match claim.map_err(|error| from_store(&error))? {
        ToolClaim::Ended(record) => return Ok(ran(record.status)),
        ToolClaim::Run { record, .. } => {
            world
                .facts()
                .run_changes(&key.message_id, key.epoch, "a claim of a tool");
            if !record.approval.lets_run() {
                let text = format!(
                    "the tool {} is claimed as {}",
                    key.execution_id, record.approval
                );
                world.facts().violation(text);
            }
            world.schedule.step("runs the tool").await;
            world.facts().tool_runs(&key.execution_id);
            if world.people().has_denied(&key.execution_id) {
                let text = format!("the denied tool {} runs", key.execution_id);
                world.facts().violation(text);
            }
            tool_end(ToolStatus::Completed, "\"changed\"")
        }
        ToolClaim::Asks(record) => {
            let text = format!("the tool {} waits for an answer", record.call.execution_id);
            world.facts().violation(text);
            return Ok(ran(record.status));
        }
        ToolClaim::OutcomeUnknown { .. } => tool_end(ToolStatus::OutcomeUnknown, "\"unknown\""),
    };
    world.schedule.step("records the tool").await;
    let record = world.store.finish_tool(&key, end).await;
    let record = record.map_err(|error| from_store(&error))?;
    {
        let mut facts = world.facts();
        let end = record.status.to_string();
        facts.promises.tool_ends(&key.execution_id, &end);
    }
    world.schedule.step("has recorded the tool").await;
    Ok(ran(record.status))
}

fn tool_end(status: ToolStatus, result: &str) -> ToolEnd {
    ToolEnd {
        is_error: status != ToolStatus::Completed,
        status,
        result: Json::parse(result).unwrap_or_default(),
        full_result: None,
        duration_ms: 1,
        events: Vec::new(),
    }
}

fn ran(status: ToolStatus) -> RunToolResult {
    RunToolResult {
        status: status.into(),
        ..RunToolResult::default()
    }
}
