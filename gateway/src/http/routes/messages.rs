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
    conversations::{NewProperties, for_message},
    idempotency::idempotency_key,
    metadata::{Metadata, MetadataMap},
    model_choice,
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
    turns::{OnBusy, StartMessages, StartOutcome, TurnError},
};

/// The most workflows that a request starts for messages before its own message. Another start is needed only when an
/// operator terminates the workflow at once.
const MAX_STARTS: u32 = 3;

/// A new message.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewMessage)]
pub(super) struct NewMessageBody {
    /// Text of the message. A message with `attachments` may omit the text or leave the text empty.
    #[serde(default)]
    #[schema(value_type = MessageText, required = true)]
    content: Option<String>,
    /// Uploaded files, in the order for the model.
    #[serde(default, deserialize_with = "objects")]
    #[schema(max_items = 10)]
    attachments: Vec<NewAttachment>,
    /// The client's own id of the message. A repeated request with an unchanged id stores no second message.
    #[schema(value_type = Option<Id>)]
    message_id: Option<String>,
    /// The model of the whole turn, `provider/model`, among the models of the agent (`GET /agents`). Without the field: the
    /// model of the conversation, or else the agent's own model. A message that joins a running turn changes no model.
    #[schema(example = "openai/gpt-5-mini")]
    model: Option<String>,
    #[serde(default)]
    #[schema(default = "queue")]
    on_busy: OnBusy,
    /// Creates the conversation if missing. Without the field, a missing conversation is an error.
    #[serde(default, deserialize_with = "optional_object")]
    create: Option<FirstMessageBody>,
}

/// Properties of a conversation that the message creates. An existing conversation stays unchanged.
#[derive(Deserialize, ToSchema)]
#[schema(as = FirstMessage)]
pub(super) struct FirstMessageBody {
    /// The title, at most 512 bytes. The beginning of the message replaces an empty title.
    #[schema(max_length = 512, pattern = "^[^\\u0000]*$", example = "Sums")]
    title: Option<String>,
    /// Name of an agent in the gateway's configuration.
    #[schema(example = "default")]
    agent: Option<String>,
    /// The model of the conversation's messages, `provider/model`, among the models of the agent.
    #[schema(example = "openai/gpt-5-mini")]
    model: Option<String>,
    /// Texts of the conversation for its LLM calls, at most 16. The operator decides which of the texts a provider gets.
    #[schema(value_type = Option<MetadataMap>)]
    metadata: Option<Metadata>,
}

/// A stored message.
#[derive(Serialize, ToSchema)]
#[schema(as = AcceptedMessage)]
pub(super) struct AcceptedMessageBody {
    #[schema(value_type = Id)]
    conversation_id: String,
    /// The gateway's id of the message, used in events.
    #[schema(value_type = Id)]
    message_id: String,
    /// `queued`, or `accepted_before` when a turn has already taken the message.
    #[schema(schema_with = statuses)]
    status: &'static str,
}

fn statuses() -> Object {
    one_of(&["queued", "accepted_before"])
}

impl AcceptedMessageBody {
    pub(super) fn new(conversation: &Conversation, queued: QueuedMessage) -> Self {
        let status = if queued.is_waiting() {
            "queued"
        } else {
            "accepted_before"
        };
        Self {
            conversation_id: conversation.name().to_owned(),
            message_id: queued.message_id,
            status,
        }
    }
}

problems!(
    Refusals: InvalidBody, InvalidId, InvalidMessage, UnknownAgent, UnknownModel, ConversationNotFound, BlobNotFound, TurnRunning, IdempotencyConflict,
    MessageTooLong, TooManyAttachments, BodyTooLarge, QueueFull, TooManyTurns, TemporalUnavailable
);

/// Sends a message.
///
/// The gateway responds after the message is stored and the turn is signalled. After 503 or without a response, repeat
/// the request with an unchanged `message_id`: the message is stored once.
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
        Some(first) => {
            let new = NewProperties {
                title: first.title,
                agent: first.agent,
                model: first.model,
                metadata: first.metadata,
            };
            let new = new.checked(&state)?;
            let chosen = body.model.as_deref();
            for_message(&state, &caller, Some(name.into_text()), new, chosen).await?
        }
    };
    let sent = Sent {
        content,
        client_message_id,
        model: model_choice::checked(&state, &conversation.agent, body.model)?,
        on_busy: body.on_busy,
    };
    let queued = submit(&state, &caller, &conversation, sent).await?;
    let body = AcceptedMessageBody::new(&conversation, queued);
    Ok((StatusCode::ACCEPTED, Json(body)))
}

/// A message as its sender sent it, after the checks.
pub(super) struct Sent {
    pub(super) content: Content,
    pub(super) client_message_id: Option<String>,
    /// The model that the message names.
    pub(super) model: Option<String>,
    pub(super) on_busy: OnBusy,
}

/// Stores the message and hands the message to the conversation's turn. A repeated call with an unchanged client id
/// stores no second message, and signals the turn again unless the message has an answer.
pub(super) async fn submit(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    sent: Sent,
) -> Result<QueuedMessage, Problem> {
    let on_busy = sent.on_busy;
    let new = new_message(state, caller, conversation, sent);
    let queued = state
        .ports
        .messages
        .queue_message(&caller.access, new)
        .await?;
    state.lists.changed(&caller.access);
    hand_over(state, caller, conversation, &queued, on_busy).await?;
    Ok(queued)
}

/// Makes the message to store, with the limits of the caller.
pub(super) fn new_message(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    sent: Sent,
) -> NewMessage {
    let Sent {
        content,
        client_message_id,
        model,
        on_busy,
    } = sent;
    NewMessage {
        conversation_id: conversation.id.clone(),
        // The row's id is never the client's id: the table also has the ids of assistant messages, which a client could
        // guess.
        message_id: format!("msg_{}", Uuid::now_v7().simple()),
        client_message_id,
        content: content.text,
        sent_by: caller.principal.clone(),
        names_model: model.is_some(),
        model: model.or_else(|| model_choice::of_conversation(state, conversation)),
        attachments: content.attachments,
        max_attached_bytes: state.ports.blobs.rules().max_message_bytes,
        on_busy: on_busy.stored(),
        max_queued: state.config.max_queued_messages,
        max_turns: state.config.tenant.concurrent_turns,
        max_turns_of_owner: state.config.owner.concurrent_turns,
    }
}

/// Hands a stored message to the conversation's turn.
pub(super) async fn hand_over(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    queued: &QueuedMessage,
    on_busy: OnBusy,
) -> Result<(), Problem> {
    let turns = &state.ports.turns;
    match &queued.turn {
        None if queued.has_others && on_busy == OnBusy::Reject => {
            withdraw(state, caller, conversation, queued).await?;
        }
        None if queued.has_others && state.config.reconciler.lost_turns == LostTurns::Resume => {
            join_others(state, caller, conversation, queued).await?;
        }
        None if on_busy == OnBusy::Reject => {
            start_or_reject(state, caller, conversation, queued).await?;
        }
        None if queued.is_new => turns.submit(conversation, &queued.message_id).await?,
        // A repeated request is no second signal of a run.
        None => {
            if !turns.signal(&conversation.id, &queued.message_id).await? {
                turns.submit(conversation, &queued.message_id).await?;
            }
        }
        // Restarts the turn if its workflow is gone. A live workflow knows the message already.
        Some(turn) if turn.is_running => {
            if turns.workflow(&conversation.id).await?.is_none() {
                turns.submit(conversation, &turn.message_id).await?;
            }
        }
        Some(_) => {}
    }
    Ok(())
}

/// Hands a message to the conversation's running workflow. Without a running workflow, the unfinished turn and the
/// earlier waiting messages start first. Otherwise, the message's turn would end the unfinished turn or overtake a
/// waiting message. The started workflow may be terminated before the signal, so only the first message starts its own
/// workflow.
async fn join_others(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    queued: &QueuedMessage,
) -> Result<(), Problem> {
    let turns = &state.ports.turns;
    let (id, message_id) = (&conversation.id, &queued.message_id);
    for _start in 0..MAX_STARTS {
        if turns.signal(id, message_id).await? {
            return Ok(());
        }
        let point = state.resume_point(caller, conversation).await?;
        let others = point.and_then(|point| StartMessages::before(point, message_id));
        let Some(others) = others else {
            return Ok(turns.submit(conversation, message_id).await?);
        };
        turns.start(conversation, others).await?;
    }
    if turns.signal(id, message_id).await? {
        return Ok(());
    }
    Err(TurnError("each started workflow was gone at once".into()).into())
}

/// Starts the turn of a stored message, or withdraws the message when the conversation is busy. A message stored by an
/// earlier request stays stored, because the earlier request may be about to start the turn.
async fn start_or_reject(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    queued: &QueuedMessage,
) -> Result<(), Problem> {
    let messages = StartMessages {
        first: queued.message_id.clone(),
        goes_on_at: None,
        has_waiting: false,
    };
    if state.ports.turns.start(conversation, messages).await? != StartOutcome::Busy {
        return Ok(());
    }
    withdraw(state, caller, conversation, queued).await
}

/// Withdraws a message that must not wait, and returns the problem `turn_running`.
async fn withdraw(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    queued: &QueuedMessage,
) -> Result<(), Problem> {
    let messages = &state.ports.messages;
    if queued.is_new
        && !messages
            .withdraw_message(&caller.access, &conversation.id, &queued.message_id)
            .await?
    {
        // A workflow that began in the meantime has taken the message.
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
    // The body's id and the header are checked, although only the first counts.
    let of_body = of_body.map(|id| checked_id("message id", id)).transpose()?;
    let key = idempotency_key(headers)?;
    Ok(of_body.or(key))
}
