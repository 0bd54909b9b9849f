//! Where a conversation stands (B3). Answered from the store, with no worker alive.

use axum::{Json, extract::State};
use serde::Serialize;

use crate::{
    extract::{Caller, ConversationId},
    problem::Problem,
    state::GatewayState,
};

#[derive(Serialize)]
pub(super) struct Status {
    is_running: bool,
    last_sequence: u32,
    current_message_id: Option<String>,
}

/// `GET /conversations/{id}/execution-status`.
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<Json<Status>, Problem> {
    state.conversation(&caller, &id).await?;
    let status = state.ports.events.execution_status(&caller.access, &id).await?;
    let status = status.ok_or_else(|| Problem::conversation_not_found(&id))?;
    Ok(Json(Status {
        is_running: status.is_running,
        last_sequence: status.last_sequence,
        current_message_id: status.current_message_id,
    }))
}
