//! Accepting messages (invariant 9): stored first, then handed to the turn, then answered.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use everturn_store::{Conversation, NewMessage, QueuedMessage};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    extract::{Body, Caller, ConversationId, checked_id},
    problem::{Code, Problem},
    state::GatewayState,
    turns::{OnBusy, StartMessages, StartOutcome},
};

const IDEMPOTENCY_KEY: &str = "idempotency-key";

#[derive(Deserialize)]
pub(super) struct Post {
    content: String,
    /// The client's own id: the same one twice is one message.
    message_id: Option<String>,
    #[serde(default)]
    on_busy: OnBusy,
}

#[derive(Serialize)]
pub(super) struct Accepted {
    conversation_id: String,
    /// Ours, as events name it.
    message_id: String,
    /// `queued`, or `accepted_before` when a turn has already taken it.
    status: &'static str,
}

/// `POST /conversations/{id}/messages`: 202 once the message is stored and its turn told.
pub(super) async fn accept(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
    headers: HeaderMap,
    Body(body): Body<Post>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    check_content(&state, &body.content)?;
    let client_message_id = client_message_id(&headers, body.message_id)?;
    let conversation = state.conversation(&caller, &id).await?;
    let queued = submit(&state, &caller, &conversation, body.content, client_message_id, body.on_busy).await?;
    let status = if queued.is_waiting() { "queued" } else { "accepted_before" };
    Ok((StatusCode::ACCEPTED, Json(Accepted { conversation_id: id, message_id: queued.message_id, status })))
}

/// Stores the message, then hands it to the conversation's turn. Repeating it with the same client id stores
/// nothing and hands it over again, unless it was answered.
pub(super) async fn submit(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    content: String,
    client_message_id: Option<String>,
    on_busy: OnBusy,
) -> Result<QueuedMessage, Problem> {
    let new = NewMessage {
        conversation_id: conversation.id.clone(),
        // Never the client's id: assistant messages share the table, and theirs can be foreseen.
        message_id: format!("msg_{}", Uuid::now_v7().simple()),
        client_message_id,
        content,
        max_queued: state.config.max_queued_messages,
        max_turns: state.config.tenant.concurrent_turns,
    };
    let queued = state.ports.conversations.queue_message(&caller.access, new).await?;
    match &queued.turn {
        None if on_busy == OnBusy::Reject => start_or_reject(state, caller, conversation, &queued).await?,
        None => state.ports.turns.submit(conversation, &queued.message_id, on_busy).await?,
        // Its workflow may be gone, and then this brings the turn back; else the workflow knows the message.
        Some(turn) if turn.is_running => {
            state.ports.turns.submit(conversation, &turn.message_id, OnBusy::Queue).await?;
        }
        Some(_) => {}
    }
    Ok(queued)
}

/// Starts the turn of a stored message, or takes the message back when another turn runs. One that an earlier request
/// stored is left alone: that request, or another one, may be about to start its turn.
async fn start_or_reject(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    queued: &QueuedMessage,
) -> Result<(), Problem> {
    let messages = StartMessages { first: queued.message_id.clone(), from_step: 0, waiting: Vec::new() };
    if state.ports.turns.start(conversation, messages).await? != StartOutcome::Busy {
        return Ok(());
    }
    let conversations = &state.ports.conversations;
    if queued.is_new && !conversations.withdraw_message(&caller.access, &conversation.id, &queued.message_id).await? {
        // A workflow that began in between has taken it.
        return Ok(());
    }
    Err(Problem::new(Code::TurnRunning, "Send the message again when the turn has ended, or with another `on_busy`."))
}

/// The content of a message can be stored and sent to a model.
pub(super) fn check_content(state: &GatewayState, content: &str) -> Result<(), Problem> {
    let limit = state.config.message_limit();
    if content.len() > limit {
        return Err(Problem::new(Code::MessageTooLong, format!("A message has at most {limit} bytes.")));
    }
    if content.trim().is_empty() {
        return Err(Problem::new(Code::InvalidMessage, "A message has some text."));
    }
    if content.contains('\0') {
        return Err(Problem::new(Code::InvalidMessage, "A message has no NUL character."));
    }
    Ok(())
}

/// The client's id of a message: of the body, else of the header `Idempotency-Key`.
pub(super) fn client_message_id(headers: &HeaderMap, of_body: Option<String>) -> Result<Option<String>, Problem> {
    if let Some(id) = of_body {
        return checked_id("message id", id).map(Some);
    }
    idempotency_key(headers)
}

/// The key with which the client repeats a request.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    checked_id("Idempotency-Key", key.to_str().unwrap_or_default().to_owned()).map(Some)
}
