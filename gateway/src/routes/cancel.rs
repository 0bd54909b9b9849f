//! Cancelling: its own call, for one message, and repeatable (invariant 9).

use axum::{Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};

use crate::{
    extract::{Caller, ConversationId, OptionalBody, checked_id},
    problem::Problem,
    state::GatewayState,
    turns::CancelOutcome,
};

#[derive(Deserialize, Default)]
pub(super) struct Cancel {
    message_id: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Answer {
    /// `cancelling` or `not_running`.
    status: &'static str,
}

/// `POST /conversations/{id}/cancel`.
pub(super) async fn cancel(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
    OptionalBody(body): OptionalBody<Cancel>,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    let asked = body.message_id.map(|message_id| checked_id("message id", message_id)).transpose()?;
    state.conversation(&caller, &id).await?;
    let message_id = match asked {
        Some(message_id) => Some(message_id),
        // Named here and now: a cancel that arrives late must not end the message after the one it was meant for.
        None => {
            state.ports.events.execution_status(&caller.access, &id).await?.and_then(|status| status.current_message_id)
        }
    };
    let outcome = match message_id {
        Some(message_id) => state.ports.turns.cancel(&id, &message_id).await?,
        None => CancelOutcome::NotRunning,
    };
    let status = match outcome {
        CancelOutcome::Requested => "cancelling",
        CancelOutcome::NotRunning => "not_running",
    };
    Ok((StatusCode::ACCEPTED, Json(Answer { status })))
}
