//! The timeline of a conversation (B9).

use axum::{Json, extract::State};
use serde::Serialize;

use crate::{
    extract::{Caller, ConversationId},
    problem::Problem,
    state::GatewayState,
    timeline::{Item, Timeline},
};

/// Events read at a time.
const PAGE: u32 = 500;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    conversation_id: String,
    timeline: Vec<Item>,
    total: usize,
}

/// `GET /conversations/{id}/messages`: from the events alone.
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<Json<Shown>, Problem> {
    state.conversation(&caller, &id).await?;
    let mut timeline = Timeline::new(state.config.max_timeline_items);
    let mut from = 0;
    loop {
        let page = state.ports.events.events(&caller.access, &id, from, PAGE).await?;
        page.events.iter().for_each(|event| timeline.push(event));
        let Some(last) = page.events.last().filter(|_| page.has_more) else { break };
        from = last.sequence_number.saturating_add(1);
    }
    Ok(Json(Shown { conversation_id: id, total: timeline.total(), timeline: timeline.into_items() }))
}
