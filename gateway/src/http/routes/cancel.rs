//! Cancels the turn of one message. Repeating the request is safe (invariant 9, accepted means durable).

use axum::{Json, extract::State, http::StatusCode};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::{Conversation, MessageCancel};
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
    turns::TurnError,
};

/// Returns the reason of a cancel, for readers and for the log of events: who has cancelled the turn. `who` is `None` for a
/// caller without a credential.
fn reason(who: Option<&str>) -> String {
    format!("cancelled by {}", who.unwrap_or("the user"))
}

/// The message to cancel.
#[derive(Deserialize, Default, ToSchema)]
#[schema(as = Cancel)]
pub(super) struct CancelBody {
    /// The gateway's id of the message to cancel. Default: the conversation's current message. A client should name the
    /// message, because the current message may have changed since the user's decision.
    #[schema(value_type = Option<Id>)]
    message_id: Option<String>,
}

/// Outcome of a cancel request.
#[derive(Serialize, ToSchema)]
#[schema(as = Cancelled)]
pub(super) struct CancelledBody {
    /// `cancelling`: the cancel is stored, and the message's turn ends. `not_running`: the message has no unfinished turn.
    #[schema(schema_with = statuses)]
    status: &'static str,
}

fn statuses() -> Object {
    one_of(&["cancelling", "not_running"])
}

problems!(Refusals: InvalidBody, InvalidId, ConversationNotFound, BodyTooLarge);

/// Cancels the running turn, or a waiting message.
///
/// The turn ends with the event `cancelled`, whose `reason` names the person or the key of the request, and keeps the text
/// written so far. The conversation's other waiting messages
/// continue. The cancel is stored before the response: a turn that cannot be reached at once ends at its next step or
/// start. Repeating the request is safe.
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
    let noted = match &message_id {
        Some(message_id) => cancel_noted(&state, &caller, &conversation, message_id).await?,
        None => MessageCancel::Ended,
    };
    let status = match noted {
        MessageCancel::Waiting | MessageCancel::Running => "cancelling",
        MessageCancel::Ended => "not_running",
    };
    Ok((StatusCode::ACCEPTED, Json(CancelledBody { status })))
}

/// Cancels the turn of a message, with an entry of the audit trail.
pub(super) async fn cancel_noted(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    message_id: &str,
) -> Result<MessageCancel, Problem> {
    let noted = cancel_message(state, caller, conversation, message_id).await?;
    match noted {
        MessageCancel::Waiting | MessageCancel::Running => {
            let target = (AuditTargetKind::Conversation, conversation.name());
            let entry = state
                .audit
                .entry(caller, AuditAction::TurnCancelled, target)
                .with("message_id", Some(message_id));
            state.audit.append(&entry).await?;
        }
        MessageCancel::Ended => {}
    }
    Ok(noted)
}

/// Stores the cancel of a message, and tells the workflow.
async fn cancel_message(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    message_id: &str,
) -> Result<MessageCancel, Problem> {
    let (messages, id) = (&state.ports.messages, &conversation.id);
    let reason = reason(caller.principal.as_deref());
    let noted = messages
        .cancel_message(&caller.access, id, message_id, &reason)
        .await?;
    if noted != MessageCancel::Ended
        && let Err(error) = tell(state, conversation, message_id, &reason).await
    {
        // The next run finds the cancel in the store.
        tracing::warn!(%error, conversation_id = id, message_id, "a cancel is stored, and the workflow could not be told");
    }
    Ok(noted)
}

/// Tells the workflow of a stored cancel. Without a workflow, starts the workflow, which ends the turn.
async fn tell(
    state: &GatewayState,
    conversation: &Conversation,
    message_id: &str,
    reason: &str,
) -> Result<(), TurnError> {
    let turns = &state.ports.turns;
    if !turns.cancel(&conversation.id, message_id, reason).await? {
        turns.submit(conversation, message_id).await?;
    }
    Ok(())
}
