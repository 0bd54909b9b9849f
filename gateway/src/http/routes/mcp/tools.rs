//! The list of tools: each agent of the caller's tenant is a tool.

use std::sync::Arc;

use rmcp::model::{
    CacheScope, JsonObject, ListToolsResult, ProtocolVersion, Tool, ToolAnnotations,
};
use serde_json::{Value, json};

use super::{
    era::Era,
    rpc::{Request, RpcError},
};
use crate::{
    config::OfferedAgent,
    http::{extract::Caller, state::GatewayState},
};

/// The most tools of a page: more than people have, and few enough for a model to read.
const PAGE: usize = 100;
/// How long a client may keep a page. The operator's file may change the agents at any time.
const FRESH_MS: u64 = 60_000;

/// Answers `tools/list`: the agents by name. The cursor is the last name of the page before, so a changed list neither
/// repeats nor skips an agent that stays.
pub(super) fn list(
    state: &GatewayState,
    caller: &Caller,
    era: &Era,
    request: &Request,
) -> Result<Value, RpcError> {
    let after = match request.params.get("cursor") {
        None | Some(Value::Null) => "",
        Some(Value::String(cursor)) => cursor,
        Some(_) => {
            return Err(RpcError::params(
                "`params.cursor` must be the text `nextCursor`.",
            ));
        }
    };
    let all = state.agents.now();
    let is_next = |agent: &&OfferedAgent| {
        let definition = &agent.definition;
        definition.serves(&caller.access.tenant_id) && *definition.name > *after
    };
    let mut agents: Vec<_> = all.iter().filter(is_next).collect();
    agents.sort_by_key(|agent| &agent.definition.name);
    let has_more = agents.len() > PAGE;
    agents.truncate(PAGE);
    let last = agents.last().filter(|_| has_more);
    let last = last.map(|agent| agent.definition.name.clone());
    let tools = agents.into_iter().map(tool).collect();
    let mut result = ListToolsResult::with_all_items(tools);
    result.next_cursor = last;
    result.ttl_ms = Some(FRESH_MS);
    result.cache_scope = Some(CacheScope::Private);
    let mut result = serde_json::to_value(result).unwrap_or_default();
    if *era == Era::Handshake(ProtocolVersion::V_2025_11_25) {
        // rmcp has no field for the tasks of this version.
        for tool in result["tools"].as_array_mut().into_iter().flatten() {
            tool["execution"] = json!({"taskSupport": "optional"});
        }
    }
    Ok(result)
}

fn tool(agent: &OfferedAgent) -> Tool {
    let definition = &agent.definition;
    let description = match definition.description.trim() {
        "" => format!(
            "Asks the agent `{}`, and returns its answer.",
            definition.name
        ),
        description => description.to_owned(),
    };
    let annotations = ToolAnnotations::new().read_only(false).open_world(true);
    Tool::new(definition.name.clone(), description, schema()).with_annotations(annotations)
}

fn schema() -> Arc<JsonObject> {
    let schema = json!({
        "type": "object",
        "properties": {
            "message": {
                "type": "string",
                "minLength": 1,
                "description": "The message to the agent. The agent sees this message and the earlier messages of its \
                                conversation, and nothing else.",
            },
            "conversation": {
                "type": "string",
                "description": "The `conversation` of an earlier result, to continue that conversation. Leave it out for a new \
                                conversation.",
            },
        },
        "required": ["message"],
        "additionalProperties": false,
    });
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}
