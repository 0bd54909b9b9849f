//! Appends a batch: loads what it reads, builds it, writes it. The callers hold the conversation's lock.
//!
//! Both are here because an append ends lost sub-agents, and the end of a sub-agent is an append itself.

use std::pin::Pin;

use chrono::{DateTime, Utc};
use everturn_proto::{
    SealedStep, ids,
    turn::SaveResult,
    words::{AgentExecutionStatus, FailureCode},
};

use super::{
    Connection, budgets, dialect::Parts, snapshot, sql::agent_executions::SAVE_STATE, write,
};
use crate::{
    api::{AgentEnd, Result, StepKey},
    batch::{self, AgentExecutionEnd, Batch, BatchRequest, Save, Snapshot},
    columns::now,
    rows::turns::SaveStateRow,
};

/// What an append left behind.
pub(super) struct Appended {
    pub(super) result: SaveResult,
    /// Steps whose texts the batch's events replace on every reader.
    pub(super) sealed: Vec<SealedStep>,
    /// How the agent execution has ended, when it has.
    pub(super) ended: Option<AgentEnd>,
}

/// Appends a batch that is not stored to an agent execution that runs and has saved `steps` steps.
pub(super) async fn append(
    connection: &mut Connection,
    request: &BatchRequest,
    last_sequence: u32,
    steps: u32,
) -> Result<Appended> {
    let mut loaded = snapshot::load(connection, request).await?;
    let begun = batch::begun_delegations(request, &loaded);
    let lost = end_lost(connection, request, begun, last_sequence).await?;
    if lost.last_sequence != last_sequence {
        // The ends of the sub-agents have also ended the calls that started them, so everything is loaded again.
        loaded = snapshot::load(connection, request).await?;
    }
    let (last_sequence, mut sealed) = (lost.last_sequence, lost.sealed);
    let now = now();
    let snapshot = Snapshot {
        last_sequence,
        steps,
        now,
        ..loaded
    };
    let batch = batch::build(request, &snapshot)?;
    if !batch.events.is_empty() {
        write(connection, request, &batch, steps, now).await?;
        sealed.extend(batch::sealed(request));
    }
    if batch.end.is_some() && snapshot.totals.has_reserved {
        budgets::free_at_end(connection, &request.step).await?;
    }
    Ok(Appended {
        result: batch.result(),
        sealed,
        ended: batch.end,
    })
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
    parts.execute(&mut *connection).await?;
    let mut results = Parts::default();
    write::results(&mut results, step, batch);
    results.execute(connection).await
}

/// Reads the status of the agent execution, and whether the batch is stored: it is when its first event is. Returns
/// `None` when there is no such agent execution.
pub(super) async fn find_state(
    connection: &mut Connection,
    request: &BatchRequest,
) -> Result<Option<SaveStateRow>> {
    let conversation_id = &request.step.conversation_id;
    let query = sqlx::query_as(SAVE_STATE)
        .bind(&request.step.agent_execution_id)
        .bind(conversation_id)
        .bind(batch::event_id(conversation_id, &batch::key(request), 0));
    Ok(query.fetch_optional(connection).await?)
}

/// What the ends of lost sub-agents have changed.
struct LostEnds {
    last_sequence: u32,
    sealed: Vec<SealedStep>,
}

/// Ends the sub-agents of these calls, which `request` closes, when they still say that they run: their workflows are
/// gone, because a parent waits for its sub-agents. Their own sub-agents end with them.
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
        for execution_id in &delegations {
            let mut end = lost_request(request, execution_id);
            let state = find_state(connection, &end).await?;
            let is_running = |state: &SaveStateRow| state.status == AgentExecutionStatus::Running;
            let Some(state) = state.filter(is_running) else {
                continue;
            };
            // The step after those that were saved is the one that may have left a text.
            end.step.step = state.steps;
            let ended = append(connection, &end, lost.last_sequence, state.steps).await?;
            lost.last_sequence = ended.result.last_sequence;
            lost.sealed.extend(ended.sealed);
        }
        Ok(lost)
    })
}

/// Returns the request that ends a lost sub-agent: as cancelled when its parent is cancelled, else as failed.
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
