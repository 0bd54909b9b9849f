//! The chat endpoint: one request sends a message and streams the answer.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue},
    response::Response,
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    attachments::{Content, NewAttachment},
    conversations::{NewProperties, for_message, id_or_key},
    messages, model_choice,
};
use crate::{
    http::{
        event_stream,
        extract::{Caller, JsonBody, objects},
        openapi::{AnyFrame, IdempotencyKey, MessageText, problems},
        problem::Problem,
        state::GatewayState,
    },
    live::Cursor,
    schema::Id,
    turns::OnBusy,
};

/// Response header with the conversation of the message.
const CONVERSATION_ID: HeaderName = HeaderName::from_static("x-conversation-id");

/// A message and its conversation.
#[derive(Deserialize, ToSchema)]
#[schema(as = Chat)]
pub(super) struct ChatBody {
    /// Text of the message. A message with `attachments` may omit the text or leave the text empty.
    #[serde(default)]
    #[schema(value_type = MessageText, required = true)]
    message: Option<String>,
    /// Uploaded files, in the order for the model.
    #[serde(default, deserialize_with = "objects")]
    #[schema(max_items = 10)]
    attachments: Vec<NewAttachment>,
    /// Id of the conversation, which is created if missing. Without the field, a new id is made.
    #[schema(value_type = Option<Id>)]
    conversation_id: Option<String>,
    /// The agent of a new conversation.
    #[schema(example = "default")]
    agent: Option<String>,
    /// The model of the whole turn, `provider/model`, among the models of the agent. Without the field: the model of the
    /// conversation, or else the agent's own model.
    #[schema(max_length = 512, example = "openai/gpt-5-mini")]
    model: Option<String>,
    /// The client's own id of the message. A repeated request with an unchanged id stores no second message.
    #[schema(value_type = Option<Id>)]
    message_id: Option<String>,
}

problems!(
    Refusals: InvalidBody, InvalidId, InvalidMessage, UnknownAgent, UnknownModel, ConversationNotFound, BlobNotFound,
    IdempotencyConflict, MessageTooLong, TooManyAttachments, BodyTooLarge, QueueFull, TooManyTurns, TooManyStreamsOfOwner, TooManyStreamsOfTenant, TemporalUnavailable, TooManyStreams,
    ShuttingDown
);

/// Sends a message and streams its turn.
///
/// Creates the conversation if missing. The first frames are `replay` and `conversation`. The next frames belong to the
/// message's turn only, until the turn ends. The turn continues after a broken connection: read the rest from the
/// stream of events.
#[utoipa::path(
    post, path = "/chat", tag = "messages", operation_id = "chat",
    params(IdempotencyKey), request_body = ChatBody,
    responses(
        (
            status = 200, description = "The turn's frames", content_type = "text/event-stream",
            headers(("x-conversation-id" = Id, description = "The conversation of the message")),
            item_schema = AnyFrame
        ),
        Refusals
    )
)]
pub(super) async fn chat(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ChatBody>,
) -> Result<Response, Problem> {
    let content = Content::checked(&state, body.message, body.attachments)?;
    let client_message_id = messages::client_message_id(&headers, body.message_id)?;
    let conversation_id = id_or_key(&caller, body.conversation_id, &headers)?;
    let new = NewProperties {
        agent: body.agent,
        ..NewProperties::default()
    };
    let chosen = body.model.as_deref();
    let conversation = for_message(&state, &caller, conversation_id, new, chosen).await?;
    let sent = messages::Sent {
        content,
        client_message_id,
        model: model_choice::checked(&state, &conversation.agent, body.model)?,
        on_busy: OnBusy::Queue,
    };
    let queued = messages::submit(&state, &caller, &conversation, sent).await?;
    // The conversation's last sequence number was read before the message was stored. Therefore every event of a new
    // message's turn has a larger number. The turn of an earlier message may be anywhere in the log.
    let cursor = if queued.is_new {
        Cursor::at(conversation.last_sequence)
    } else {
        Cursor::default()
    };
    // A message that joined a running turn ends with the running turn's message.
    let turn = queued
        .turn
        .map_or(queued.message_id, |turn| turn.message_id);
    let feed = state.feed(&caller, &conversation, cursor).await?;
    let feed = feed.of_turn(&turn);
    let mut response = event_stream::response(feed.into_chunks());
    if let Ok(id) = HeaderValue::from_str(conversation.name()) {
        response.headers_mut().insert(CONVERSATION_ID, id);
    }
    Ok(response)
}
