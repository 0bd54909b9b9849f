//! Client tools: the calls that wait for the client to run them, and their results. A result is stored, and then the
//! turn is told.

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

/// The calls that the client is to run.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingClientTools)]
pub(super) struct WaitingClientToolsBody {
    /// Oldest first.
    client_tools: Vec<WaitingCallBody>,
}

problems!(ListRefusals: InvalidId, ConversationNotFound);

/// Lists the tool calls that the client is to run, oldest first.
#[utoipa::path(
    get, path = "/conversations/{id}/client-tools", tag = "tools", operation_id = "list_client_tools",
    params(ConversationId), responses((status = 200, body = WaitingClientToolsBody, description = "What waits"), ListRefusals)
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

/// What came of a client tool.
#[derive(Deserialize, ToSchema)]
#[schema(as = ClientToolResult)]
pub(super) struct ClientToolResultBody {
    /// Any JSON, at most 1 MiB.
    #[schema(value_type = serde_json::Value)]
    result: RawJson,
    /// True when it says what went wrong.
    #[serde(default)]
    is_error: bool,
}

problems!(Refusals: InvalidBody, InvalidId, ConversationNotFound, ExecutionNotFound, ClientToolAnswered,
    ClientToolExpired, ResultTooLarge, BodyTooLarge, TemporalUnavailable);

/// Takes the result of a client tool: it is stored, then the turn is told. Repeating this is safe.
#[utoipa::path(
    post, path = "/conversations/{id}/client-tools/{execution_id}", tag = "tools", operation_id = "answer_client_tool",
    params(ExecutionPath), request_body = ClientToolResultBody,
    responses((status = 202, body = StoredResultBody, description = "Stored, and the turn was told"), Refusals)
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
    // The turn is told also when the result was stored before: the request that stored it may have died in between.
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

/// Returns a call of a client tool that needs no approval any more. It may have ended.
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
            "A person must approve this call before the client runs it.",
        ));
    }
    Ok((conversation, call))
}

/// Stores the result unless the call has ended; returns the call, which this result has ended now or before.
async fn store_result(
    state: &GatewayState,
    caller: &Caller,
    conversation_id: &str,
    call: OutsideTool,
    posted: ClientToolResultBody,
) -> Result<OutsideTool, Problem> {
    let now = Utc::now();
    let execution_id = call.record.call.execution_id.clone();
    let end = ToolEnd::of_result(
        &execution_id,
        posted.result,
        posted.is_error,
        duration_ms(&call, now),
    );
    let call = if call.needs_result() && !call.is_expired(now) {
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
    Err(if call.is_expired(now) {
        Problem::new(
            Code::ClientToolExpired,
            "The model is told that no result came in time. It may ask again.",
        )
    } else {
        Problem::new(
            Code::ClientToolAnswered,
            "Another result was first, or the turn ended before this one came.",
        )
    })
}

/// Returns the time from when the client was asked until now.
fn duration_ms(call: &OutsideTool, now: DateTime<Utc>) -> u32 {
    let timeout = TimeDelta::milliseconds(i64::from(call.record.call.timeout_ms));
    let asked_at = call.expires_at.map_or(call.requested_at, |at| at - timeout);
    milliseconds(asked_at, now)
}
