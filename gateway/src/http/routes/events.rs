//! The event log of a conversation, in pages and as a stream.

use axum::{Json, extract::State, http::HeaderMap, response::Response};
use everturn_proto::event::Event;
use everturn_store::PageLimit;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::wire::{bytes_of, checked_limit};
use crate::{
    http::{
        event_stream,
        extract::{Caller, ConversationId, Params},
        openapi::{AnyFrame, LastEventId, LoggedEvent, problems},
        problem::{Code, Problem},
        state::GatewayState,
    },
    live::Cursor,
    schema::{CursorText, Sequence},
};

const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// First sequence number of the page, inclusive.
    #[serde(default)]
    #[param(value_type = Sequence)]
    from_sequence: u32,
    /// Reads backwards: the page has the last events with smaller sequence numbers, down to `from_sequence`. A number
    /// beyond the last event, such as 4294967295, gives the last events of the log.
    #[param(value_type = Option<Sequence>)]
    before: Option<u32>,
    /// Maximum number of events of the page. Large events make the page shorter, down to one event.
    #[param(minimum = 1, maximum = 1000, default = 1000)]
    limit: Option<u32>,
}

/// A page of events.
#[derive(Serialize, ToSchema)]
#[schema(as = EventPage)]
pub(super) struct EventPageBody {
    #[schema(value_type = Vec<LoggedEvent>)]
    events: Vec<Event>,
    /// True when more events exist. Continue from the last sequence number + 1, or, reading backwards, before the first
    /// sequence number.
    has_more: bool,
}

problems!(PageRefusals: InvalidId, InvalidParameter, ConversationNotFound);

/// Reads a page of the event log, in order.
#[utoipa::path(
    get, path = "/conversations/{id}/events", tag = "events", operation_id = "list_events",
    params(ConversationId, PageQuery), responses((status = 200, body = EventPageBody, description = "A page"), PageRefusals)
)]
pub(super) async fn page(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
    Params(query): Params<PageQuery>,
) -> Result<Json<EventPageBody>, Problem> {
    let limit = query.limit.unwrap_or(state.config.default_page);
    let limit = PageLimit {
        rows: checked_limit(limit, state.config.max_page)?,
        bytes: state.config.max_page_bytes,
    };
    let log = state.conversation(&caller, &name).await?.log();
    let _room = state.room(&caller, bytes_of(limit)).await?;
    let (events, access) = (&state.ports.events, &caller.access);
    let from = query.from_sequence;
    let mut page = match query.before {
        Some(before) => {
            let mut page = events.events_before(access, &log, before, limit).await?;
            let read = page.events.len();
            page.events.retain(|event| event.sequence_number >= from);
            // With the event `from` in the page, no earlier event belongs to the range.
            let first = page.events.first().map(|event| event.sequence_number);
            page.has_more &= page.events.len() == read && first != Some(from);
            page
        }
        None => events.events(access, &log, from, limit).await?,
    };
    for event in &mut page.events {
        name.as_str().clone_into(&mut event.conversation_id);
    }
    Ok(Json(EventPageBody {
        events: page.events,
        has_more: page.has_more,
    }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StreamQuery {
    /// The `id` of the client's last event, or the event's number. 0: the stream begins with the first event.
    #[param(value_type = Option<CursorText>)]
    cursor: Option<Cursor>,
}

problems!(
    StreamRefusals: InvalidId, InvalidParameter, ConversationNotFound, TooManyStreamsOfOwner, TooManyStreamsOfTenant, TooManyStreams,
    ShuttingDown
);

/// Streams every event after the cursor, and new events as they occur.
///
/// Only the frame `end` is the end of the stream. After the frame `reconnect`, and after a connection that breaks without
/// a frame, connect again to any gateway with the `id` of the last event: a cursor never expires. For a text in progress,
/// the stream begins with a `text_start` that has the text so far.
#[utoipa::path(
    get, path = "/conversations/{id}/events/stream", tag = "events", operation_id = "stream_events",
    params(ConversationId, StreamQuery, LastEventId),
    responses(
        (status = 200, description = "The frames", content_type = "text/event-stream", item_schema = AnyFrame),
        StreamRefusals
    )
)]
pub(super) async fn stream(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
    Params(query): Params<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let cursor = last_event_id(&headers)?
        .or(query.cursor)
        .unwrap_or_default();
    let conversation = state.conversation(&caller, &name).await?;
    let feed = state.feed(&caller, &conversation, cursor).await?;
    Ok(event_stream::response(feed.into_chunks()))
}

/// Returns the cursor that a reconnecting browser sends. The browser's URL still has the first connection's cursor,
/// therefore the header wins.
fn last_event_id(headers: &HeaderMap) -> Result<Option<Cursor>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let cursor = value
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok());
    cursor.map(Some).ok_or_else(|| {
        Problem::new(
            Code::InvalidParameter,
            "`Last-Event-ID` must be the `id` or the sequence number of an event.",
        )
    })
}
