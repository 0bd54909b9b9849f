//! Retries a failed turn. The retry is stored as a message before the turn is signalled (invariant 9, accepted means
//! durable), and goes on from the context that the failed turn has left (invariants 5, paid once, and 6, done once).

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::RetryTurn;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    attachments::Content,
    idempotency::idempotency_key,
    messages::{AcceptedMessageBody, Sent, hand_over, new_message},
};
use crate::{
    http::{
        audit::WithDetails,
        extract::{Caller, ConversationId, OptionalJsonBody, checked_id},
        openapi::{IdempotencyKey, problems},
        problem::Problem,
        state::GatewayState,
    },
    schema::Id,
    turns::OnBusy,
};

/// The failed turn to retry.
#[derive(Deserialize, Default, ToSchema)]
#[schema(as = Retry)]
pub(super) struct RetryBody {
    /// The message id in the events of the failed turn. Default: the message of the conversation's newest turn.
    #[schema(value_type = Option<Id>)]
    message_id: Option<String>,
}

problems!(
    Refusals: InvalidBody, InvalidId, ConversationNotFound, NotRetryable, IdempotencyConflict, BodyTooLarge, QueueFull,
    TooManyTurns, TemporalUnavailable
);

/// Runs a failed turn again from its last checkpoint.
///
/// Only the newest turn of a conversation can be retried, and only after a failure. LLM calls with an answer and tools
/// with a result are not made again; the failed step is made again. The retry is a turn of its own, with the response's
/// `message_id`. A failed turn is retried once, so repeating the request is safe.
#[utoipa::path(
    post, path = "/conversations/{id}/retry", tag = "turns", operation_id = "retry_turn",
    params(ConversationId, IdempotencyKey), request_body = Option<RetryBody>,
    responses((status = 202, body = AcceptedMessageBody, description = "The stored retry"), Refusals)
)]
pub(super) async fn retry(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
    headers: HeaderMap,
    OptionalJsonBody(body): OptionalJsonBody<RetryBody>,
) -> Result<(StatusCode, Json<AcceptedMessageBody>), Problem> {
    let asked = body.message_id.map(|id| checked_id("message id", id));
    let failed_message_id = asked.transpose()?;
    let key = idempotency_key(&headers)?;
    let conversation = state.conversation(&caller, &name).await?;
    let on_busy = OnBusy::Queue;
    // The store gives the retry the model of the failed turn.
    let sent = Sent {
        content: Content::default(),
        client_message_id: key,
        model: None,
        on_busy,
    };
    let message = new_message(&state, &caller, &conversation, sent);
    let retry = RetryTurn {
        failed_message_id,
        message,
    };
    let queued = state
        .ports
        .messages
        .retry_turn(&caller.access, retry)
        .await?;
    state.lists.changed(&caller.access);
    hand_over(&state, &caller, &conversation, &queued, on_busy).await?;
    if queued.is_new {
        let target = (AuditTargetKind::Conversation, name.as_str());
        let entry = state
            .audit
            .entry(&caller, AuditAction::TurnRetried, target)
            .with("message_id", queued.message_id.as_str());
        state.audit.append(&entry).await?;
    }
    let body = AcceptedMessageBody::new(&conversation, queued);
    Ok((StatusCode::ACCEPTED, Json(body)))
}
