//! Results of remote tools that exceed Temporal's limit for a payload. The tool's worker posts such a result here while
//! its activity runs, and the activity returns no result.

use axum::{Json, extract::State, http::StatusCode};
use chrono::Utc;
use everturn_proto::{Json as RawJson, words::ToolKind};
use everturn_store::{ResultSender, ToolEnd};
use serde::Deserialize;
use utoipa::ToSchema;

use super::stored_results::{StoredResultBody, checked_size, is_ended_by, milliseconds};
use crate::{
    http::{
        extract::{Caller, ExecutionPath, JsonBody, checked_id},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::Id,
};

/// The result of a remote tool.
#[derive(Deserialize, ToSchema)]
#[schema(as = RemoteToolResult)]
pub(super) struct RemoteToolResultBody {
    /// The `run_id` passed to the tool.
    #[schema(value_type = Id)]
    run_id: String,
    /// Any JSON value, at most 1 MiB.
    #[schema(value_type = serde_json::Value)]
    result: RawJson,
    /// True when the result describes an error.
    #[serde(default)]
    is_error: bool,
}

problems!(Refusals: InvalidBody, InvalidId, ConversationNotFound, ExecutionNotFound, Conflict, ResultTooLarge,
    BodyTooLarge);

/// Stores the result of a running remote tool. The turn continues when the tool's activity ends, regardless of the
/// activity's return value. Repeating the request is safe.
#[utoipa::path(
    post, path = "/conversations/{id}/remote-tools/{execution_id}", tag = "tools",
    operation_id = "store_remote_tool_result", params(ExecutionPath), request_body = RemoteToolResultBody,
    responses((status = 202, body = StoredResultBody, description = "Stored"), Refusals)
)]
pub(super) async fn accept(
    State(state): State<GatewayState>,
    caller: Caller,
    path: ExecutionPath,
    JsonBody(body): JsonBody<RemoteToolResultBody>,
) -> Result<(StatusCode, Json<StoredResultBody>), Problem> {
    checked_size(&body.result)?;
    let run_id = checked_id("run id", body.run_id)?;
    let (conversation, call) = state.outside_tool(&caller, &path).await?;
    if call.record.call.kind() != ToolKind::Remote {
        return Err(Problem::execution_not_found(&path.execution_id));
    }
    let end = ToolEnd::of_tool(
        &path.execution_id,
        body.result,
        body.is_error,
        milliseconds(call.requested_at, Utc::now()),
    );
    let stored = state
        .ports
        .outside
        .store_result(
            &caller.access,
            &conversation.id,
            &path.execution_id,
            ResultSender::RemoteTool { run_id: &run_id },
            end.clone(),
        )
        .await?;
    if !stored.is_some_and(|call| is_ended_by(&call, &end)) {
        return Err(Problem::new(
            Code::Conflict,
            "The result was not stored: another result came first, the turn has ended, or another workflow \
             run has claimed the call.",
        ));
    }
    Ok((
        StatusCode::ACCEPTED,
        Json(StoredResultBody::of(path.execution_id)),
    ))
}
