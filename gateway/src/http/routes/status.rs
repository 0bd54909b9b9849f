//! Where a conversation stands. Answered from the store, with no worker alive.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{
        extract::{Caller, ConversationId},
        openapi::problems,
        problem::Problem,
        state::GatewayState,
    },
    schema::{Id, Sequence},
};

/// Where a conversation stands.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionStatus)]
pub(super) struct ConversationStatusBody {
    /// A turn runs, or a message waits for its turn.
    is_running: bool,
    /// The number of the last event, 0 before the first.
    #[schema(value_type = Sequence)]
    last_sequence: u32,
    /// The message whose turn runs, else the one that waits longest.
    #[schema(value_type = Option<Id>, required = true)]
    current_message_id: Option<String>,
}

problems!(Refusals: InvalidId, ConversationNotFound);

/// Tells whether a turn runs.
///
/// Answered from the store, with no worker alive: that a workflow was ended from outside is not seen.
#[utoipa::path(
    get, path = "/conversations/{id}/execution-status", tag = "turns", operation_id = "show_execution_status",
    params(ConversationId), responses((status = 200, body = ConversationStatusBody, description = "Where it stands"), Refusals)
)]
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
) -> Result<Json<ConversationStatusBody>, Problem> {
    let conversation = state.conversation(&caller, &name).await?;
    let status = state
        .ports
        .events
        .conversation_head(&caller.access, &conversation.id)
        .await?;
    let status = status.ok_or_else(|| Problem::conversation_not_found(name.as_str()))?;
    Ok(Json(ConversationStatusBody {
        is_running: status.is_running,
        last_sequence: status.last_sequence,
        current_message_id: status.current_message_id,
    }))
}
