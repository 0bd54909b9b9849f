//! Accepts messages: a message is stored first, then handed to the turn, and then the request is answered
//! (invariant 9, accepted means durable).

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use everturn_store::{Conversation, NewMessage, QueuedMessage};
use serde::{Deserialize, Serialize};
use utoipa::{ToSchema, openapi::schema::Object};
use uuid::Uuid;

use super::{
    attachments::{Content, NewAttachment},
    conversations::{check_title, for_message},
    idempotency::idempotency_key,
};
use crate::{
    config::LostTurns,
    http::{
        extract::{Caller, ConversationId, JsonBody, checked_id, objects, optional_object},
        openapi::{IdempotencyKey, MessageText, problems},
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::{Id, one_of},
    turns::{OnBusy, StartMessages, StartOutcome},
};

/// A message to be.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewMessage)]
pub(super) struct NewMessageBody {
    /// The text of the message. When there are `attachments`, it may be left out, or empty.
    #[serde(default)]
    #[schema(value_type = MessageText, required = true)]
    content: Option<String>,
    /// Files that were uploaded before, in the order in which the model is given them.
    #[serde(default, deserialize_with = "objects")]
    #[schema(max_items = 10)]
    attachments: Vec<NewAttachment>,
    /// The client's own id: the same one twice is one message.
    #[schema(value_type = Option<Id>)]
    message_id: Option<String>,
    #[serde(default)]
    #[schema(default = "queue")]
    on_busy: OnBusy,
    /// Creates the conversation when there is none. Left out: a conversation that is missing is an error.
    #[serde(default, deserialize_with = "optional_object")]
    create: Option<FirstMessageBody>,
}

/// What a message makes a conversation of that does not exist. Without effect on one that does.
#[derive(Deserialize, ToSchema)]
#[schema(as = FirstMessage)]
pub(super) struct FirstMessageBody {
    /// The title, at most 512 bytes. While it is empty, the beginning of the message takes its place.
    #[schema(max_length = 512, pattern = "^[^\\u0000]*$", example = "Sums")]
    title: Option<String>,
    /// A name of the gateway's configuration.
    #[schema(example = "default")]
    agent: Option<String>,
}

/// A stored message.
#[derive(Serialize, ToSchema)]
#[schema(as = AcceptedMessage)]
pub(super) struct AcceptedMessageBody {
    #[schema(value_type = Id)]
    conversation_id: String,
    /// Ours, as events name it.
    #[schema(value_type = Id)]
    message_id: String,
    /// `queued`, or `accepted_before` when a turn has already taken it.
    #[schema(schema_with = statuses)]
    status: &'static str,
}

fn statuses() -> Object {
    one_of(&["queued", "accepted_before"])
}

problems!(
    Refusals: InvalidBody, InvalidId, InvalidMessage, UnknownAgent, ConversationNotFound, BlobNotFound, TurnRunning, IdempotencyConflict,
    MessageTooLong, TooManyAttachments, BodyTooLarge, QueueFull, TooManyTurns, TemporalUnavailable
);

/// Sends a message.
///
/// Answered once the message is stored and its turn told. Without an answer, or with 503, repeat the request with the
/// same `message_id`: the message is stored once.
#[utoipa::path(
    post, path = "/conversations/{id}/messages", tag = "messages", operation_id = "send_message",
    params(ConversationId, IdempotencyKey), request_body = NewMessageBody,
    responses((status = 202, body = AcceptedMessageBody, description = "Stored"), Refusals)
)]
pub(super) async fn accept(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
    headers: HeaderMap,
    JsonBody(body): JsonBody<NewMessageBody>,
) -> Result<(StatusCode, Json<AcceptedMessageBody>), Problem> {
    let content = Content::checked(&state, body.content, body.attachments)?;
    let client_message_id = client_message_id(&headers, body.message_id)?;
    let conversation = match body.create {
        None => state.conversation(&caller, &name).await?,
        Some(FirstMessageBody { title, agent }) => {
            let title = title.filter(|title| !title.is_empty());
            check_title(&state, title.as_deref().unwrap_or_default())?;
            for_message(&state, &caller, Some(name.into_text()), title, agent).await?
        }
    };
    let queued = submit(
        &state,
        &caller,
        &conversation,
        content,
        client_message_id,
        body.on_busy,
    )
    .await?;
    let status = if queued.is_waiting() {
        "queued"
    } else {
        "accepted_before"
    };
    Ok((
        StatusCode::ACCEPTED,
        Json(AcceptedMessageBody {
            conversation_id: conversation.name().to_owned(),
            message_id: queued.message_id,
            status,
        }),
    ))
}

/// Stores the message, then hands it to the conversation's turn. Repeating it with the same client id stores
/// nothing and hands it over again, unless it was answered.
pub(super) async fn submit(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    content: Content,
    client_message_id: Option<String>,
    on_busy: OnBusy,
) -> Result<QueuedMessage, Problem> {
    let new = NewMessage {
        conversation_id: conversation.id.clone(),
        // The row's id is never the client's: ids of assistant messages are in the same table, and can be foreseen.
        message_id: format!("msg_{}", Uuid::now_v7().simple()),
        client_message_id,
        content: content.text,
        sent_by: caller.principal.clone(),
        attachments: content.attachments,
        max_attached_bytes: state.ports.blobs.rules().max_message_bytes,
        on_busy: on_busy.stored(),
        max_queued: state.config.max_queued_messages,
        max_turns: state.config.tenant.concurrent_turns,
        max_turns_of_owner: state.config.owner.concurrent_turns,
    };
    let queued = state
        .ports
        .conversations
        .queue_message(&caller.access, new)
        .await?;
    state.lists.changed(&caller.access);
    match &queued.turn {
        None if queued.has_others && on_busy == OnBusy::Reject => {
            withdraw(state, caller, conversation, &queued).await?;
        }
        None if queued.has_others && state.config.reconciler.lost_turns == LostTurns::Resume => {
            join_others(state, caller, conversation, &queued, on_busy).await?;
        }
        None if on_busy == OnBusy::Reject => {
            start_or_reject(state, caller, conversation, &queued).await?;
        }
        None => {
            state
                .ports
                .turns
                .submit(conversation, &queued.message_id, on_busy)
                .await?;
        }
        // If its workflow is gone, this brings the turn back. If not, the workflow knows the message.
        Some(turn) if turn.is_running => {
            state
                .ports
                .turns
                .submit(conversation, &turn.message_id, OnBusy::Queue)
                .await?;
        }
        Some(_) => {}
    }
    Ok(queued)
}

/// Hands a message over to the workflow that runs. When none does, although a turn has not ended or another message
/// waits, these come first: the turn of this message would end a turn that is only lost, or overtake a message.
async fn join_others(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    queued: &QueuedMessage,
    on_busy: OnBusy,
) -> Result<(), Problem> {
    let turns = &state.ports.turns;
    let (id, message_id) = (&conversation.id, &queued.message_id);
    if turns.signal(id, message_id, on_busy).await? {
        return Ok(());
    }
    let point = state.resume_point(caller, conversation).await?;
    let others = point.and_then(|mut point| {
        point.waiting.retain(|waiting| waiting != message_id);
        StartMessages::unfinished(point)
    });
    if let Some(others) = others {
        turns.start(conversation, others).await?;
    }
    Ok(turns.submit(conversation, message_id, on_busy).await?)
}

/// Starts the turn of a stored message, or takes the message back when another turn runs. One that an earlier request
/// stored is left alone: that request, or another one, may be about to start its turn.
async fn start_or_reject(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    queued: &QueuedMessage,
) -> Result<(), Problem> {
    let messages = StartMessages {
        first: queued.message_id.clone(),
        goes_on_at: None,
        waiting: Vec::new(),
    };
    if state.ports.turns.start(conversation, messages).await? != StartOutcome::Busy {
        return Ok(());
    }
    withdraw(state, caller, conversation, queued).await
}

/// Takes a message back that is not to wait, and says that a turn runs.
async fn withdraw(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    queued: &QueuedMessage,
) -> Result<(), Problem> {
    let conversations = &state.ports.conversations;
    if queued.is_new
        && !conversations
            .withdraw_message(&caller.access, &conversation.id, &queued.message_id)
            .await?
    {
        // A workflow that began in between has taken it.
        return Ok(());
    }
    Err(Problem::new(
        Code::TurnRunning,
        "Send the message again when the turn has ended, or with another `on_busy`.",
    ))
}

/// Returns the client's id of a message, from the body or else from the header `Idempotency-Key`.
pub(super) fn client_message_id(
    headers: &HeaderMap,
    of_body: Option<String>,
) -> Result<Option<String>, Problem> {
    // Both are checked, although only one of them counts.
    let of_body = of_body.map(|id| checked_id("message id", id)).transpose()?;
    let key = idempotency_key(headers)?;
    Ok(of_body.or(key))
}
