//! A tool call that waits for someone outside: for a person's approval, or for a result of the client.

use everturn_proto::Json as RawJson;
use everturn_store::{OutsideTool, PageLimit};
use serde::Serialize;
use utoipa::ToSchema;

use super::wire::{bytes_of, time};
use crate::{
    http::{
        extract::{Caller, Name},
        problem::Problem,
        state::GatewayState,
    },
    schema::Id,
};

/// The most calls of one conversation that are read. A step has at most 64, and several agents may wait at once. Those
/// left out are shown when the ones before them are answered.
const MAX_WAITING: PageLimit = PageLimit::rows(512);

/// The calls of a conversation that wait for someone outside and are `wanted`, oldest first.
pub(super) async fn waiting_calls(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Name,
    wanted: impl Fn(&OutsideTool) -> bool,
) -> Result<impl Iterator<Item = OutsideTool>, Problem> {
    let conversation_id = state.conversation(caller, conversation).await?.id;
    let _room = state.room(caller, bytes_of(MAX_WAITING)).await?;
    let waiting = state
        .ports
        .outside
        .waiting_tools(&caller.access, &conversation_id, MAX_WAITING)
        .await?;
    Ok(waiting.into_iter().filter(wanted))
}

/// A tool call as someone outside sees it.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingCall)]
pub(super) struct WaitingCallBody {
    #[schema(value_type = Id)]
    execution_id: String,
    tool_name: String,
    /// The input as the model wrote it, commonly an object.
    #[schema(value_type = serde_json::Value)]
    tool_input: RawJson,
    /// The model's.
    call_id: String,
    #[schema(value_type = Id)]
    message_id: String,
    #[schema(value_type = Id)]
    agent_execution_id: String,
    requested_at: String,
    /// No answer is taken after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<String>,
}

impl From<OutsideTool> for WaitingCallBody {
    fn from(tool: OutsideTool) -> Self {
        let call = tool.record.call;
        Self {
            execution_id: call.execution_id,
            tool_name: call.tool_name,
            tool_input: call.tool_input.unwrap_or_default(),
            call_id: call.call_id,
            message_id: tool.message_id,
            agent_execution_id: tool.agent_execution_id,
            requested_at: time(tool.requested_at),
            expires_at: tool.expires_at.map(time),
        }
    }
}
