//! Cancels the turn of one message. Repeating the request is safe (invariant 9, accepted means durable).

use axum::{Json, extract::State, http::StatusCode};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use serde::{Deserialize, Serialize};
use utoipa::{ToSchema, openapi::schema::Object};

use crate::{
    http::{
        audit::WithDetails,
        extract::{Caller, ConversationId, OptionalJsonBody, checked_id},
        openapi::problems,
        problem::Problem,
        state::GatewayState,
    },
    schema::{Id, one_of},
    turns::CancelOutcome,
};

/// The message to cancel.
#[derive(Deserialize, Default, ToSchema)]
#[schema(as = Cancel)]
pub(super) struct CancelBody {
    /// The gateway's id of the message to cancel. Default: the conversation's current message.
    #[schema(value_type = Option<Id>)]
    message_id: Option<String>,
}

/// Outcome of a cancel request.
#[derive(Serialize, ToSchema)]
#[schema(as = Cancelled)]
pub(super) struct CancelledBody {
    /// `cancelling`: the turn received the request. `not_running`: no turn runs.
    #[schema(schema_with = statuses)]
    status: &'static str,
}

fn statuses() -> Object {
    one_of(&["cancelling", "not_running"])
}

problems!(Refusals: InvalidBody, InvalidId, ConversationNotFound, BodyTooLarge, TemporalUnavailable);

/// Cancels the running turn, or a waiting message.
///
/// The turn ends with the event `cancelled` and keeps the text written so far. The conversation's waiting messages
/// continue. Repeating the request is safe.
#[utoipa::path(
    post, path = "/conversations/{id}/cancel", tag = "turns", operation_id = "cancel_turn",
    params(ConversationId), request_body = Option<CancelBody>,
    responses((status = 202, body = CancelledBody, description = "The outcome of the request"), Refusals)
)]
pub(super) async fn cancel(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
    OptionalJsonBody(body): OptionalJsonBody<CancelBody>,
) -> Result<(StatusCode, Json<CancelledBody>), Problem> {
    let asked = body
        .message_id
        .map(|message_id| checked_id("message id", message_id))
        .transpose()?;
    let conversation = state.conversation(&caller, &name).await?;
    let message_id = match asked {
        Some(message_id) => Some(message_id),
        // The current message's id is read now: a cancel that arrives late must not end the turn of the next message.
        None => state
            .ports
            .events
            .conversation_head(&caller.access, &conversation.id)
            .await?
            .and_then(|status| status.current_message_id),
    };
    let outcome = match &message_id {
        Some(message_id) => {
            let turns = &state.ports.turns;
            turns.cancel(&conversation.id, message_id).await?
        }
        None => CancelOutcome::NotRunning,
    };
    let status = match outcome {
        CancelOutcome::Requested => {
            let target = (AuditTargetKind::Conversation, name.as_str());
            let entry = state
                .audit
                .entry(&caller, AuditAction::TurnCancelled, target)
                .with("message_id", message_id);
            state.audit.append(&entry).await?;
            "cancelling"
        }
        CancelOutcome::NotRunning => "not_running",
    };
    Ok((StatusCode::ACCEPTED, Json(CancelledBody { status })))
}
