//! A step that goes on to another model of its agent's chain. One transaction writes the note and the event.

use everturn_proto::event::ModelFallback;

use super::{
    Connection,
    append::{append, find_state},
    checkpoints::note_failed_call,
    lock::lock_known,
    runs,
};
use crate::{
    api::{FailedCall, NotedFailure, Result, StepKey},
    batch::{BatchRequest, Save},
    error::{Missing, StoreError},
};

/// Notes the failed call and appends the event. A repeated call changes no row.
pub(super) async fn fall_back(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
    failed: &FailedCall,
    event: &ModelFallback,
) -> Result<NotedFailure> {
    let conversation = lock_known(connection, &step.conversation_id).await?;
    runs::check(&conversation, &step.conversation_id, step.epoch)?;
    let request = BatchRequest {
        step: step.clone(),
        save: Save::ModelFallback(event.clone()),
    };
    let last_sequence = conversation.last_sequence;
    let id = &step.agent_execution_id;
    let state = find_state(connection, &request)
        .await?
        .ok_or_else(|| StoreError::not_found(Missing::AgentExecution, id))?;
    if state.stored_sequence.is_some() {
        return Ok(NotedFailure::FellBack { last_sequence });
    }
    if !note_failed_call(connection, step, generation, failed).await? {
        return Ok(NotedFailure::Superseded);
    }
    let appended = append(connection, &request, last_sequence, state.steps).await?;
    Ok(NotedFailure::FellBack {
        last_sequence: appended.result.last_sequence,
    })
}
