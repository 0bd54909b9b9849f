//! The timeline of a conversation.

use axum::{Json, extract::State};
use everturn_store::PageLimit;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{
        extract::{Caller, ConversationId},
        openapi::problems,
        problem::Problem,
        state::GatewayState,
    },
    live::timeline::{Timeline, TimelineItem},
};

/// Events read at a time.
const PAGE: PageLimit = PageLimit {
    rows: 500,
    bytes: 1024 * 1024,
};

/// What a chat window shows.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Timeline)]
pub(super) struct TimelineBody {
    conversation_id: String,
    /// The newest items, in order: as many as the service's limits of items and of bytes allow.
    timeline: Vec<TimelineItem>,
    /// Items there are, those left out included.
    total: usize,
}

problems!(Refusals: InvalidId, ConversationNotFound);

/// Shows a conversation as messages, thoughts and tool calls.
///
/// Made from the events alone. Blank thoughts, plans and the events that end a turn are not shown.
#[utoipa::path(
    get, path = "/conversations/{id}/messages", tag = "messages", operation_id = "show_timeline",
    params(ConversationId), responses((status = 200, body = TimelineBody, description = "The timeline"), Refusals)
)]
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<Json<TimelineBody>, Problem> {
    let log = state.conversation(&caller, &id).await?.log();
    let mut timeline = Timeline::new(
        state.config.max_timeline_items,
        state.config.max_timeline_bytes,
    );
    let mut from = 0;
    loop {
        let page = state
            .ports
            .events
            .events(&caller.access, &log, from, PAGE)
            .await?;
        page.events.iter().for_each(|event| timeline.push(event));
        let Some(last) = page.events.last().filter(|_| page.has_more) else {
            break;
        };
        from = last.sequence_number.saturating_add(1);
    }
    Ok(Json(TimelineBody {
        conversation_id: id,
        total: timeline.total(),
        timeline: timeline.into_items(),
    }))
}
