//! Whole results of tools. Events, timelines and models get only the beginning of a large result.

use axum::{Json, extract::State};
use everturn_proto::limits::TOOL_RESULT_SLICE_MAX_BYTES;
use everturn_store::ResultRange;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    http::{
        extract::{Caller, ExecutionPath, Params},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::Id,
};

/// Minimum bytes of a slice: the length of the longest UTF-8 character.
const MIN_LIMIT: u32 = 4;
/// Default bytes of a slice.
const DEFAULT_LIMIT: u32 = 64 * 1024;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SliceQuery {
    /// Bytes of the result before the slice. An offset inside a character moves to the next character.
    #[serde(default)]
    #[param(minimum = 0, maximum = 4_294_967_295_u32, default = 0)]
    offset: u32,
    /// Maximum bytes of the slice.
    #[param(minimum = 4, maximum = 262_144, default = 65536)]
    limit: Option<u32>,
}

/// A slice of a tool's result, cut between characters.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolResultSlice)]
pub(super) struct ToolResultSliceBody {
    #[schema(value_type = Id)]
    execution_id: String,
    /// Text of the slice: the content of a string result, or the JSON of any other result. Empty behind the end.
    text: String,
    /// Start of the slice, in bytes of UTF-8.
    offset: u32,
    /// Length of the whole result, in bytes of UTF-8.
    total_bytes: u32,
    /// `offset` of the next slice; null at the end.
    #[schema(required = true)]
    next_offset: Option<u32>,
}

problems!(Refusals: InvalidId, InvalidParameter, ConversationNotFound, ExecutionNotFound);

/// Reads the whole result of a tool execution, a slice at a time.
///
/// Events, timelines and the model get only the first 16 KiB of a result. A tool execution without a result yet is
/// answered with 404.
#[utoipa::path(
    get, path = "/conversations/{id}/tool-executions/{execution_id}/result", tag = "tools",
    operation_id = "read_tool_result", params(ExecutionPath, SliceQuery),
    responses((status = 200, body = ToolResultSliceBody, description = "A slice"), Refusals)
)]
pub(super) async fn read(
    State(state): State<GatewayState>,
    caller: Caller,
    path: ExecutionPath,
    Params(query): Params<SliceQuery>,
) -> Result<Json<ToolResultSliceBody>, Problem> {
    let max_limit = u32::try_from(TOOL_RESULT_SLICE_MAX_BYTES).unwrap_or(u32::MAX);
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(MIN_LIMIT..=max_limit).contains(&limit) {
        let detail = format!("`limit` must be {MIN_LIMIT} to {max_limit} bytes.");
        return Err(Problem::new(Code::InvalidParameter, detail));
    }
    let ExecutionPath {
        conversation,
        execution_id,
    } = path;
    let conversation_id = state.conversation(&caller, &conversation).await?.id;
    let range = ResultRange::new(query.offset, limit);
    let _room = state.room(&caller, TOOL_RESULT_SLICE_MAX_BYTES).await?;
    let slice = state
        .ports
        .results
        .tool_result(&caller.access, &conversation_id, &execution_id, range)
        .await?
        .ok_or_else(|| {
            Problem::execution_not_found(&execution_id).with_detail(format!(
                "The conversation has no tool execution `{execution_id}` with a result."
            ))
        })?;
    Ok(Json(ToolResultSliceBody {
        execution_id,
        next_offset: slice.next_offset_bytes(),
        text: slice.text,
        offset: slice.offset_bytes,
        total_bytes: slice.total_bytes,
    }))
}
