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

/// Events read at a time.
const PAGE: PageLimit = PageLimit {
    rows: 500,
    bytes: 1024 * 1024,
};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TimelineQuery {
    /// `nextBefore` of the page behind this one: only items of events with smaller sequence numbers. Without it, or with a
    /// number that is larger than all, the page is the newest.
    #[param(value_type = Option<Sequence>)]
    before: Option<u32>,
    /// Items of the page. It has fewer when they are large, but at least one.
    #[param(minimum = 1, maximum = 10_000, default = 10_000)]
    limit: Option<u32>,
}

/// What a chat window shows.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Timeline)]
pub(super) struct TimelineBody {
    conversation_id: String,
    /// The items, in order: as many as the limits of items and of bytes allow.
    timeline: Vec<TimelineItem>,
    /// Items of the page.
    total: usize,
    /// `before` of the page with what came before; null when there is nothing. That page may be empty.
    #[schema(value_type = Option<Sequence>, required = true)]
    next_before: Option<u32>,
}

problems!(Refusals: InvalidId, InvalidParameter, ConversationNotFound);

/// Shows a conversation as messages, thoughts, tool calls, and what happened besides.
///
/// Made from the events alone, from the newest on. Blank thoughts, skills and patterns are not shown.
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
