//! The status of a conversation, read from the store. No worker is needed.

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

/// Status of a conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionStatus)]
pub(super) struct ConversationStatusBody {
    /// True when a turn runs or a message waits for its turn.
    is_running: bool,
    /// Number of the last event; 0 before the first event.
    #[schema(value_type = Sequence)]
    last_sequence: u32,
    /// Message of the running turn, or else the longest waiting message.
    #[schema(value_type = Option<Id>, required = true)]
    current_message_id: Option<String>,
}

problems!(Refusals: InvalidId, ConversationNotFound);

/// Tells whether a turn runs.
///
/// The status comes from the store and needs no worker. A workflow that was terminated in Temporal still counts as running.
#[utoipa::path(
    get, path = "/conversations/{id}/execution-status", tag = "turns", operation_id = "show_execution_status",
    params(ConversationId), responses((status = 200, body = ConversationStatusBody, description = "The status of the conversation"), Refusals)
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
