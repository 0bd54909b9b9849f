//! Tool calls that wait for a person's approval or for a client's result.

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

/// Maximum waiting calls read of one conversation. A step has at most 64 calls, and several agents may wait concurrently.
/// Calls beyond the limit appear after earlier calls are answered.
const MAX_WAITING: PageLimit = PageLimit::rows(512);

/// Returns the conversation's waiting calls that match `wanted`, the oldest first.
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

/// A tool call that waits for a person or a client.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingCall)]
pub(super) struct WaitingCallBody {
    #[schema(value_type = Id)]
    execution_id: String,
    tool_name: String,
    /// The title of the call for people; absent without a template in the tool's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    title: Option<String>,
    /// Input of the call as the model wrote it, usually an object.
    #[schema(value_type = serde_json::Value)]
    tool_input: RawJson,
    /// Id of the call, given by the model.
    call_id: String,
    #[schema(value_type = Id)]
    message_id: String,
    #[schema(value_type = Id)]
    agent_execution_id: String,
    requested_at: String,
    /// Answers after the expiry time are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<String>,
}

impl From<OutsideTool> for WaitingCallBody {
    fn from(tool: OutsideTool) -> Self {
        let call = tool.record.call;
        Self {
            title: call.title(),
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
