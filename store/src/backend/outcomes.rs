//! Settles the unknown outcome of a tool call, as a person says. One transaction appends the event, replaces the end of
//! the call, and changes the transcript for later model calls. No turn need run.

use everturn_proto::{
    Json,
    event::OutcomeSettled,
    words::{ToolOutcome, ToolStatus},
};
use sqlx::{FromRow, types::Json as Column};

use super::{
    Connection,
    append::{append, find_state},
    lock::{lock_known, lock_visible_conversation},
    statement::Statement as _,
    statements::{events::EventData, outside::UnknownCall},
};
use crate::{
    api::{Access, OutcomeRefusal, PersonsOutcome, Result, SettledOutcome, StepKey},
    batch::{self, BatchRequest, Save, shown_result},
    columns::MaybeNumber,
    error::{Missing, StoreError},
};

/// The call of the outcome.
#[derive(FromRow)]
struct CallRow {
    agent_execution_id: String,
    message_id: String,
    #[sqlx(try_from = "i64")]
    step: u32,
    #[sqlx(try_from = "String")]
    status: ToolStatus,
    #[sqlx(try_from = "MaybeNumber")]
    observed_sequence: Option<u32>,
}

pub(super) async fn settle(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
    settled: &PersonsOutcome,
) -> Result<SettledOutcome> {
    if !lock_visible_conversation(connection, access, conversation_id).await? {
        return Ok(SettledOutcome::Refused(OutcomeRefusal::NoCall));
    }
    let last_sequence = lock_known(connection, conversation_id).await?.last_sequence;
    let call = UnknownCall {
        conversation_id,
        execution_id: &settled.execution_id,
    };
    let call: Option<CallRow> = call.query_as()?.fetch_optional(&mut *connection).await?;
    let Some(call) = call else {
        return Ok(SettledOutcome::Refused(OutcomeRefusal::NoCall));
    };
    let is_unknown = call.status == ToolStatus::OutcomeUnknown && call.observed_sequence.is_some();
    let request = BatchRequest {
        step: StepKey {
            conversation_id: conversation_id.to_owned(),
            message_id: call.message_id,
            agent_execution_id: call.agent_execution_id,
            step: call.step,
            epoch: None,
        },
        save: Save::Outcome(settled.clone()),
    };
    if let Some(stored) = stored(connection, &request).await? {
        return Ok(if is_same(&stored, settled) {
            SettledOutcome::Settled(stored)
        } else {
            SettledOutcome::Refused(OutcomeRefusal::SettledOtherwise)
        });
    }
    if !is_unknown {
        return Ok(SettledOutcome::Refused(OutcomeRefusal::Known));
    }
    let id = &request.step.agent_execution_id;
    let state = find_state(connection, &request)
        .await?
        .ok_or_else(|| StoreError::not_found(Missing::AgentExecution, id))?;
    Box::pin(append(connection, &request, last_sequence, state.steps)).await?;
    let stored = stored(connection, &request).await?;
    let stored = stored.ok_or_else(|| {
        StoreError::Corrupt(format!(
            "the outcome of `{}` has no event",
            settled.execution_id
        ))
    })?;
    Ok(SettledOutcome::Settled(stored))
}

/// Returns the stored event of the outcome.
async fn stored(
    connection: &mut Connection,
    request: &BatchRequest,
) -> Result<Option<OutcomeSettled>> {
    let conversation_id = &request.step.conversation_id;
    let event_id = &batch::event_id(conversation_id, &batch::key(request), 0);
    let data = EventData { event_id };
    let data: Option<(Column<Json>,)> = data.query_as()?.fetch_optional(connection).await?;
    let decode = |data: Json| {
        let unreadable = |error| StoreError::Corrupt(format!("the event `{event_id}`: {error}"));
        data.decode().map_err(unreadable)
    };
    data.map(|(data,)| decode(data.0)).transpose()
}

/// True when a stored outcome says the same as a new outcome, whoever the people are.
fn is_same(stored: &OutcomeSettled, new: &PersonsOutcome) -> bool {
    let shown = |result| shown_result(&new.execution_id, result);
    let has_same_result = match (&stored.result, new.result.as_ref().map(shown)) {
        (Some(stored), Some(new)) => stored.is_same_value(&new),
        (stored, new) => stored.is_none() && new.is_none(),
    };
    ToolOutcome::from(stored.outcome.as_str()) == new.outcome
        && stored.comment == new.comment
        && has_same_result
}
