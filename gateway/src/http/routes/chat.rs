//! One message and its answer in one request.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue},
    response::Response,
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    attachments::{Content, NewAttachment},
    conversations::{for_message, id_or_key},
    messages,
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

/// Response header with the conversation the message went to.
const CONVERSATION_ID: HeaderName = HeaderName::from_static("x-conversation-id");

/// A message, and where it goes.
#[derive(Deserialize, ToSchema)]
#[schema(as = Chat)]
pub(super) struct ChatBody {
    /// The text of the message. When there are `attachments`, it may be left out, or empty.
    #[serde(default)]
    #[schema(value_type = MessageText, required = true)]
    message: Option<String>,
    /// Files that were uploaded before, in the order in which the model is given them.
    #[serde(default, deserialize_with = "objects")]
    #[schema(max_items = 10)]
    attachments: Vec<NewAttachment>,
    /// The conversation is created when there is none; left out, with a new id.
    #[schema(value_type = Option<Id>)]
    conversation_id: Option<String>,
    /// The agent of a new conversation.
    #[schema(example = "default")]
    agent: Option<String>,
    /// The client's own id: the same one twice is one message.
    #[schema(value_type = Option<Id>)]
    message_id: Option<String>,
}

problems!(
    Refusals: InvalidBody, InvalidId, InvalidMessage, UnknownAgent, ConversationNotFound, BlobNotFound,
    IdempotencyConflict, MessageTooLong, TooManyAttachments, BodyTooLarge, QueueFull, TooManyTurns, TooManyStreamsOfOwner, TooManyStreamsOfTenant, TemporalUnavailable, TooManyStreams,
    ShuttingDown
);

/// Sends a message and streams its turn.
///
/// Makes the conversation when there is none. The first frames are `replay` and `conversation`; then come the frames of
/// this message's turn, and no other, to its end. When the connection breaks, the turn goes on: come back with the
/// stream of events.
#[utoipa::path(
    post, path = "/chat", tag = "messages", operation_id = "chat",
    params(IdempotencyKey), request_body = ChatBody,
    responses(
        (
            status = 200, description = "The turn's frames", content_type = "text/event-stream",
            headers(("x-conversation-id" = Id, description = "The conversation the message went to")),
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
    let conversation = for_message(&state, &caller, conversation_id, None, body.agent).await?;
    let queued = messages::submit(
        &state,
        &caller,
        &conversation,
        content,
        client_message_id,
        OnBusy::Queue,
    )
    .await?;
    // The conversation was read before the message was stored, so nothing of its turn can be before that. The
    // turn of a message sent before may be anywhere in the log.
    let cursor = if queued.is_new {
        Cursor::at(conversation.last_sequence)
    } else {
        Cursor::default()
    };
    // A message that joined another one's turn has no end of its own.
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
