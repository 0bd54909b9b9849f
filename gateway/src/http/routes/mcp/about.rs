//! The handshakes: `initialize`, and `server/discover` of the version without a handshake.

use axum::{
    Json,
    http::{HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use rmcp::model::{
    DiscoverResult, Implementation, InitializeResult, JsonObject, ProtocolVersion,
    ServerCapabilities, TASKS_EXTENSION_ID, ToolsCapability,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::rpc::{Request, result_message};

const INSTRUCTIONS: &str = "Each tool is an agent. A call sends a message to the agent and returns its answer. A call without \
    `conversation` begins a conversation. Name the conversation of an earlier result to continue it. A call that was cut off goes \
    on: send the call again with the same `_meta` field `everturn/idempotency_key` to get its result.";

fn server() -> Implementation {
    Implementation::new("everturn", env!("CARGO_PKG_VERSION")).with_title("Everturn")
}

fn capabilities() -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(ToolsCapability::default());
    capabilities
}

/// Answers `initialize`. The session is only a name for the ids of the client's requests: every gateway serves every
/// session, and keeps none.
pub(super) fn initialize(request: &Request) -> Response {
    let asked = request.text("protocolVersion").unwrap_or_default();
    let known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let agreed = known
        .filter(|version| version.has_initialize())
        .find(|version| version.as_str() == asked)
        .unwrap_or(&ProtocolVersion::LATEST_WITH_INITIALIZE);
    let mut result = InitializeResult::new(capabilities()).with_instructions(INSTRUCTIONS);
    result.protocol_version = agreed.clone();
    result.server_info = server();
    let mut result = serde_json::to_value(result).unwrap_or_default();
    if *agreed == ProtocolVersion::V_2025_11_25 {
        // rmcp has no field for the tasks of this version.
        result["capabilities"]["tasks"] =
            json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    }
    let mut response = (StatusCode::OK, Json(result_message(&request.id, &result))).into_response();
    let session = Uuid::new_v4().simple().to_string();
    if let Ok(session) = HeaderValue::try_from(session) {
        response.headers_mut().insert("mcp-session-id", session);
    }
    response
}

/// Answers `server/discover`.
pub(super) fn discover() -> Value {
    let mut capabilities = capabilities();
    let tasks = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
    capabilities.extensions = Some([tasks].into());
    let versions = ProtocolVersion::KNOWN_VERSIONS.to_vec();
    let mut result = DiscoverResult::new(versions, capabilities).with_server_info(server());
    result.instructions = Some(INSTRUCTIONS.to_owned());
    serde_json::to_value(result).unwrap_or_default()
}
