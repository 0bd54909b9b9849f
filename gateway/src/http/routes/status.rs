//! The status of a conversation, read from the store. No worker is needed.

use axum::{Json, extract::State};
use everturn_store::WaitingCall;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{
        extract::{Caller, ConversationId},
        openapi::problems,
        problem::Problem,
        state::GatewayState,
    },
    listed::time,
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
    /// The chosen model of the running turn, `provider/model`; null when the agent's own model answers.
    #[schema(required = true, example = "openai/gpt-5-mini")]
    model: Option<String>,
    /// The call that waits for its provider; null without a waiting call.
    #[schema(required = true)]
    waiting: Option<WaitingCallBody>,
}

/// A call of a model that the provider has refused, and that is made again later. The provider does not bill the call.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingCall)]
struct WaitingCallBody {
    agent_execution_id: String,
    step: u32,
    /// The code of the refusal: `llm_rate_limited`, `llm_overloaded` or `llm_unavailable`.
    code: String,
    /// The number of the step's next call, refused calls included.
    attempt: u32,
    /// The time of the next call, by the clock of the worker.
    #[schema(format = DateTime)]
    next_try_at: String,
}

impl From<WaitingCall> for WaitingCallBody {
    fn from(call: WaitingCall) -> Self {
        Self {
            agent_execution_id: call.agent_execution_id,
            step: call.step,
            code: call.refused.code,
            attempt: call.refused.attempt,
            next_try_at: time(call.refused.next_try_at),
        }
    }
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
    let waiting = if status.is_running {
        let executions = &state.ports.executions;
        executions
            .waiting_call(&caller.access, &conversation.id)
            .await?
    } else {
        None
    };
    Ok(Json(ConversationStatusBody {
        waiting: waiting.map(WaitingCallBody::from),
        is_running: status.is_running,
        last_sequence: status.last_sequence,
        current_message_id: status.current_message_id,
        model: status.model,
    }))
}
