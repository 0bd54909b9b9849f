//! The timeline of a conversation.

use axum::{Json, extract::State};
use everturn_store::{EventLinks, PageLimit};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::wire::checked_limit;
use crate::{
    http::{
        extract::{Caller, ConversationId, Params},
        openapi::problems,
        problem::Problem,
        state::GatewayState,
    },
    live::timeline::{Timeline, TimelineItem},
    schema::Sequence,
};

/// Limits of one read of events.
const PAGE: PageLimit = PageLimit {
    rows: 500,
    bytes: 1024 * 1024,
};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TimelineQuery {
    /// `nextBefore` of the previous response: only items of events with smaller sequence numbers. Without the
    /// parameter, or with a number beyond the last event, the page has the newest items.
    #[param(value_type = Option<Sequence>)]
    before: Option<u32>,
    /// Maximum items of the page. Large items make the page shorter, down to one item.
    #[param(minimum = 1, maximum = 10_000, default = 10_000)]
    limit: Option<u32>,
}

/// A page of a conversation's timeline, as a chat window shows a conversation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Timeline)]
pub(super) struct TimelineBody {
    conversation_id: String,
    /// The items, the oldest first: as many as the limits of items and of bytes allow.
    timeline: Vec<TimelineItem>,
    /// Number of items of the page.
    total: usize,
    /// `before` of the page with older items; null at the beginning of the conversation. The older page may be empty.
    #[schema(value_type = Option<Sequence>, required = true)]
    next_before: Option<u32>,
}

problems!(Refusals: InvalidId, InvalidParameter, ConversationNotFound);

/// Shows a conversation as messages, thoughts, tool calls and other items.
///
/// The gateway builds the timeline from events, from the newest event backwards. Thoughts without words, skills
/// and patterns are omitted.
#[utoipa::path(
    get, path = "/conversations/{id}/messages", tag = "messages", operation_id = "show_timeline",
    params(ConversationId, TimelineQuery),
    responses((status = 200, body = TimelineBody, description = "The timeline"), Refusals)
)]
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
    Params(query): Params<TimelineQuery>,
) -> Result<Json<TimelineBody>, Problem> {
    let most = state.config.max_timeline_items;
    let limit = checked_limit(query.limit.unwrap_or(most), most)?;
    let log = state.conversation(&caller, &name).await?.log();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let _room = state.room(&caller, state.config.max_timeline_bytes).await?;
    let mut timeline = Timeline::new(limit, state.config.max_timeline_bytes);
    let events = &state.ports.events;
    let mut before = query.before.unwrap_or(u32::MAX);
    let has_more = loop {
        let page = events
            .events_before(&caller.access, &log, before, PAGE)
            .await?;
        let mut newest_first = page.events.iter().rev();
        if !newest_first.all(|event| timeline.push_before(event)) {
            break true;
        }
        let Some(first) = page.events.first().filter(|_| page.has_more) else {
            break false;
        };
        before = first.sequence_number;
    };
    let wanted = timeline.wanted_links();
    let links = if wanted.is_empty() {
        EventLinks::default()
    } else {
        events.event_links(&caller.access, &log, &wanted).await?
    };
    let next_before = timeline.oldest().filter(|_| has_more);
    let timeline = timeline.into_items(links);
    Ok(Json(TimelineBody {
        conversation_id: name.into_text(),
        total: timeline.len(),
        timeline,
        next_before,
    }))
}
