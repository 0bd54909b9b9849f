//! The event log: a page of it, and the stream of it.

use axum::{Json, extract::State, http::HeaderMap, response::Response};
use everturn_proto::event::Event;
use serde::{Deserialize, Serialize};

use crate::{
    extract::{Caller, ConversationId, Params},
    problem::{Code, Problem},
    state::GatewayState,
};

const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    from_sequence: u32,
    limit: Option<u32>,
}

#[derive(Serialize)]
pub(super) struct Page {
    events: Vec<Event>,
    has_more: bool,
}

/// `GET /conversations/{id}/events` (B2): `from_sequence` is inclusive.
pub(super) async fn page(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page>, Problem> {
    let limit = query.limit.unwrap_or(state.config.default_page);
    if !(1..=state.config.max_page).contains(&limit) {
        let detail = format!("`limit` is 1 to {}.", state.config.max_page);
        return Err(Problem::new(Code::InvalidParameter, detail));
    }
    state.conversation(&caller, &id).await?;
    let page = state.ports.events.events(&caller.access, &id, query.from_sequence, limit).await?;
    Ok(Json(Page { events: page.events, has_more: page.has_more }))
}

#[derive(Deserialize)]
pub(super) struct StreamQuery {
    cursor: Option<u32>,
}

/// `GET /conversations/{id}/events/stream` (B4): everything after the cursor, then live.
pub(super) async fn stream(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
    Params(query): Params<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let cursor = last_event_id(&headers)?.or(query.cursor).unwrap_or(0);
    let conversation = state.conversation(&caller, &id).await?;
    Ok(state.feed(&caller, &conversation, cursor)?.into_response())
}

/// What a browser sends when it comes back. It repeats the URL of its first visit, so this is the newer cursor.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u32>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| {
        Problem::new(Code::InvalidParameter, "`Last-Event-ID` is the `id` of an event: its sequence number.")
    })
}
