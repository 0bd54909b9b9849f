//! Appends a batch: loads the batch's snapshot, builds the batch, writes the batch. The callers hold the conversation's
//! lock.
//!
//! The ends of lost sub-agents are here too, because an append ends lost sub-agents, and ending a sub-agent is an
//! append.

use std::pin::Pin;

use chrono::{DateTime, Utc};
use everturn_proto::{
    SealedStep, ids,
    turn::SaveResult,
    words::{AgentExecutionStatus, FailureCode},
};

use super::{
    Connection, budgets,
    dialect::Parts,
    list_changes,
    lock::lock_running,
    snapshot,
    statement::Statement as _,
    statements::{agent_executions::SaveState, outside::Clock},
    write,
};
use crate::{
    api::{AgentEnd, Result, StepKey},
    batch::{self, AgentExecutionEnd, Batch, BatchRequest, Save, Snapshot},
    columns::now,
    rows::turns::SaveStateRow,
};

/// The outcome of an append.
pub(super) struct Appended {
    pub(super) result: SaveResult,
    /// Steps whose texts every reader replaces with the batch's events.
    pub(super) sealed: Vec<SealedStep>,
    /// The end of the agent execution, if the batch ended it.
    pub(super) ended: Option<AgentEnd>,
}

/// Appends a batch that is not stored yet. The agent execution is running and has saved `steps` steps.
pub(super) async fn append(
    connection: &mut Connection,
    request: &BatchRequest,
    last_sequence: u32,
    steps: u32,
) -> Result<Appended> {
    let mut loaded = snapshot::load(connection, request).await?;
    let begun = batch::begun_delegations(request, &loaded);
    let lost = end_lost(connection, request, begun, last_sequence).await?;
    let is_cut = matches!(request.save, Save::End(_)) && loaded.totals.has_open_call;
    if is_cut {
        budgets::free_at_end(connection, &request.step).await?;
    }
    if is_cut || lost.last_sequence != last_sequence {
        // The event of the end has the sums with the cut call. The sub-agents' ends have also ended the calls that
        // started the sub-agents.
        loaded = snapshot::load(connection, request).await?;
    }
    let (last_sequence, mut sealed) = (lost.last_sequence, lost.sealed);
    let now = now();
    let snapshot = Snapshot {
        last_sequence,
        steps,
        now,
        clock: clock(connection, request, &loaded, now).await?,
        ..loaded
    };
    let batch = batch::build(request, &snapshot)?;
    if !batch.events.is_empty() {
        write(connection, request, &batch, steps, now).await?;
        sealed.extend(batch::sealed(request));
    }
    Ok(Appended {
        result: batch.result(),
        sealed,
        ended: batch.end,
    })
}

/// Returns the time from which the batch counts its waits for the outside. A batch without a wait needs no clock.
pub(crate) async fn clock(
    connection: &mut Connection,
    request: &BatchRequest,
    snapshot: &Snapshot,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>> {
    if !batch::asks_outside(request, snapshot) {
        return Ok(now);
    }
    let clock = Clock { now };
    Ok(clock.query_scalar()?.fetch_one(connection).await?)
}

async fn write(
    connection: &mut Connection,
    request: &BatchRequest,
    batch: &Batch,
    saved_steps: u32,
    now: DateTime<Utc>,
) -> Result<()> {
    let step = &request.step;
    let mut parts = Parts::default();
    write::batch(&mut parts, request, batch, now);
    write::advance_conversation(&mut parts, step, batch, now);
    write::advance_agent_execution(&mut parts, step, batch, saved_steps, now);
    list_changes::note_batch(&mut parts, &step.conversation_id, batch, now);
    parts.execute(&mut *connection).await?;
    let mut results = Parts::default();
    write::results(&mut results, step, batch, now);
    results.execute(connection).await
}

/// Reads the status of the agent execution, and whether the batch is stored. A batch is stored when its first event is.
/// Returns `None` for an unknown agent execution.
pub(super) async fn find_state(
    connection: &mut Connection,
    request: &BatchRequest,
) -> Result<Option<SaveStateRow>> {
    let conversation_id = &request.step.conversation_id;
    let select = SaveState {
        agent_execution_id: &request.step.agent_execution_id,
        conversation_id,
        first_event_id: &batch::event_id(conversation_id, &batch::key(request), 0),
    };
    Ok(select.query_as()?.fetch_optional(connection).await?)
}

/// The changes made by the ends of lost sub-agents.
struct LostEnds {
    last_sequence: u32,
    sealed: Vec<SealedStep>,
}

/// Ends the sub-agents of the calls that `request` closes, if the sub-agents still have the status running. Their
/// workflows are gone, because a parent waits for its sub-agents. Nested sub-agents end with them.
fn end_lost<'a>(
    connection: &'a mut Connection,
    request: &'a BatchRequest,
    delegations: Vec<String>,
    last_sequence: u32,
) -> Pin<Box<dyn Future<Output = Result<LostEnds>> + Send + 'a>> {
    Box::pin(async move {
        let mut lost = LostEnds {
            last_sequence,
            sealed: Vec::new(),
        };
        let mut is_locked = false;
        for execution_id in &delegations {
            let mut end = lost_request(request, execution_id);
            let state = find_state(connection, &end).await?;
            let is_running = |state: &SaveStateRow| state.status == AgentExecutionStatus::Running;
            let Some(state) = state.filter(is_running) else {
                continue;
            };
            if !is_locked {
                // Of these, the agent execution of the request comes last, after the budget of the sub-agents.
                lock_running(connection, &request.step.conversation_id).await?;
                is_locked = true;
            }
            // The end belongs to the step after the saved steps, because that step may have left a text.
            end.step.step = state.steps;
            let ended = append(connection, &end, lost.last_sequence, state.steps).await?;
            lost.last_sequence = ended.result.last_sequence;
            lost.sealed.extend(ended.sealed);
        }
        Ok(lost)
    })
}

/// Returns the request that ends a lost sub-agent: as cancelled under a cancelled parent, otherwise as failed.
fn lost_request(parent: &BatchRequest, execution_id: &str) -> BatchRequest {
    let failed = |message: &str| AgentExecutionEnd::Failed {
        code: FailureCode::SubAgentLost,
        message: message.to_owned(),
    };
    let end = match &parent.save {
        Save::End(end @ AgentExecutionEnd::Cancelled { .. }) => end.clone(),
        Save::Observe {
            failure: Some(failure),
            ..
        } => failed(failure),
        _ => failed("The sub-agent was stopped from outside."),
    };
    let conversation_id = &parent.step.conversation_id;
    BatchRequest {
        step: StepKey {
            agent_execution_id: ids::sub_agent_execution_id(conversation_id, execution_id),
            step: 0,
            ..parent.step.clone()
        },
        save: Save::End(end),
    }
}
