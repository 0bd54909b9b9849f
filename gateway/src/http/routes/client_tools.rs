//! Client tools: tool calls for the client to run, and the results from clients. The gateway stores a result and then
//! signals the turn.

use axum::{Json, extract::State, http::StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::{Json as RawJson, words::ToolKind};
use everturn_store::{Conversation, OutsideTool, ResultSender, ToolEnd};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    stored_results::{StoredResultBody, checked_size, is_ended_by, milliseconds},
    waiting_calls::{WaitingCallBody, waiting_calls},
};
use crate::http::{
    extract::{Caller, ConversationId, ExecutionPath, JsonBody},
    openapi::problems,
    problem::{Code, Problem},
    state::GatewayState,
};

/// Tool calls for the client to run.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingClientTools)]
pub(super) struct WaitingClientToolsBody {
    /// Waiting tool calls, the oldest first.
    client_tools: Vec<WaitingCallBody>,
}

problems!(ListRefusals: InvalidId, ConversationNotFound);

/// Lists the tool calls for the client to run, the oldest first.
#[utoipa::path(
    get, path = "/conversations/{id}/client-tools", tag = "tools", operation_id = "list_client_tools",
    params(ConversationId), responses((status = 200, body = WaitingClientToolsBody, description = "The waiting calls"), ListRefusals)
)]
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<Json<WaitingClientToolsBody>, Problem> {
    let waiting = waiting_calls(&state, &caller, &id, OutsideTool::needs_result).await?;
    Ok(Json(WaitingClientToolsBody {
        client_tools: waiting.map(WaitingCallBody::from).collect(),
    }))
}

/// The result of a client tool.
#[derive(Deserialize, ToSchema)]
#[schema(as = ClientToolResult)]
pub(super) struct ClientToolResultBody {
    /// Any JSON value, at most 1 MiB.
    #[schema(value_type = serde_json::Value)]
    result: RawJson,
    /// True when the result describes an error.
    #[serde(default)]
    is_error: bool,
}

problems!(Refusals: InvalidBody, InvalidId, ConversationNotFound, ExecutionNotFound, ClientToolAnswered,
    ClientToolExpired, ResultTooLarge, BodyTooLarge, TemporalUnavailable);

/// Stores the result of a client tool and then signals the turn. Repeating the request is safe.
#[utoipa::path(
    post, path = "/conversations/{id}/client-tools/{execution_id}", tag = "tools", operation_id = "answer_client_tool",
    params(ExecutionPath), request_body = ClientToolResultBody,
    responses((status = 202, body = StoredResultBody, description = "Stored, and the turn was signalled"), Refusals)
)]
pub(super) async fn accept(
    State(state): State<GatewayState>,
    caller: Caller,
    path: ExecutionPath,
    JsonBody(body): JsonBody<ClientToolResultBody>,
) -> Result<(StatusCode, Json<StoredResultBody>), Problem> {
    checked_size(&body.result)?;
    let (conversation, call) = checked_call(&state, &caller, &path).await?;
    let call = store_result(&state, &caller, &conversation.id, call, body).await?;
    // The turn is signalled even for a result stored before, because the earlier request may have died before its signal.
    let sub_agent = state.sub_agent_of(&caller, &conversation, &call).await?;
    state
        .ports
        .turns
        .tool_result(&conversation.id, sub_agent.as_deref(), &path.execution_id)
        .await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(StoredResultBody::of(path.execution_id)),
    ))
}

/// Returns a client tool's call that needs no further approval. The call may have ended.
pub(super) async fn checked_call(
    state: &GatewayState,
    caller: &Caller,
    path: &ExecutionPath,
) -> Result<(Conversation, OutsideTool), Problem> {
    let (conversation, call) = state.outside_tool(caller, path).await?;
    if call.record.call.kind() != ToolKind::Client {
        return Err(Problem::execution_not_found(&path.execution_id));
    }
    if call.needs_approval() {
        return Err(Problem::new(
            Code::Conflict,
            "A person must approve the call before the client may run the tool.",
        ));
    }
    Ok((conversation, call))
}

/// Stores the result unless the call has ended. Returns the call if the posted result ended the call, now or before.
async fn store_result(
    state: &GatewayState,
    caller: &Caller,
    conversation_id: &str,
    call: OutsideTool,
    posted: ClientToolResultBody,
) -> Result<OutsideTool, Problem> {
    let now = Utc::now();
    let execution_id = call.record.call.execution_id.clone();
    let end = ToolEnd::of_tool(
        &execution_id,
        posted.result,
        posted.is_error,
        duration_ms(&call, now),
    );
    let call = if call.needs_result() && !call.is_expired {
        let (access, outside) = (&caller.access, &state.ports.outside);
        let stored = outside
            .store_result(
                access,
                conversation_id,
                &execution_id,
                ResultSender::Client,
                end.clone(),
            )
            .await?;
        stored.ok_or_else(|| Problem::execution_not_found(&execution_id))?
    } else {
        call
    };
    if is_ended_by(&call, &end) {
        return Ok(call);
    }
    Err(if call.is_expired {
        Problem::new(
            Code::ClientToolExpired,
            "No result came in time, and the model was told. The model may ask again.",
        )
    } else {
        Problem::new(
            Code::ClientToolAnswered,
            "Another result came first, or the turn ended before the result came.",
        )
    })
}

/// Returns the milliseconds since the client was asked.
fn duration_ms(call: &OutsideTool, now: DateTime<Utc>) -> u32 {
    let timeout = TimeDelta::milliseconds(i64::from(call.record.call.timeout_ms));
    let asked_at = call.expires_at.map_or(call.requested_at, |at| at - timeout);
    milliseconds(asked_at, now)
}
