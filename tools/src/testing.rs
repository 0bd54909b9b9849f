//! What the tests of tools share.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_proto::Json;
use serde_json::Value;

use crate::{
    CheckedTool, Effect, Tool, ToolContext, ToolError, ToolSpec,
    egress::{Egress, EgressPolicy},
};

/// A client that may connect to loopback.
pub(crate) fn egress() -> Egress {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let mut policy = EgressPolicy::default();
    policy.allow("127.0.0.1").unwrap();
    Egress::new(policy).unwrap()
}

/// The context of a first attempt.
pub(crate) fn context() -> ToolContext {
    ToolContext {
        conversation_id: "c".into(),
        stored_conversation_id: "c".into(),
        message_id: "m".into(),
        agent_execution_id: "run_1".into(),
        execution_id: "exec_0123456789ab".into(),
        call_id: "call_1".into(),
        idempotency_key: "c/m/exec_0123456789ab".into(),
        ..ToolContext::by_hand()
    }
}

/// Checks the input and runs the tool. Returns its result and its events, or the error as the model reads it.
pub(crate) async fn call(
    tool: &CheckedTool,
    input: Value,
) -> Result<(Value, Vec<(String, Value)>), String> {
    tool.validate(&Json::of(&input))?;
    let context = context();
    let events = context.events.clone();
    let result = tool.tool().run(context, Json::of(&input)).await;
    let result = result.map_err(|error| error.to_string())?.to_value();
    let events = events.take().into_iter();
    let events = events.map(|(event_type, data)| (event_type.into(), data.to_value()));
    Ok((result, events.collect()))
}

struct Fake(ToolSpec);

#[async_trait]
impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn run(&self, _: ToolContext, input: Json) -> Result<Json, ToolError> {
        Ok(input)
    }
}

/// Makes a tool whose result is the input.
pub(crate) fn fake(name: &str, parameters: serde_json::Value) -> Arc<dyn Tool> {
    Arc::new(Fake(ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters,
        title: None,
        effect: Effect::Read,
        is_inline: false,
    }))
}
