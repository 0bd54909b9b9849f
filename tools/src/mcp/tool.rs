//! A tool of a server, as called by the runtime.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_proto::{Json, ToolResultEvents};
use rmcp::model::{JsonObject, ServerResult};
use serde_json::Value;

use super::{error::CallError, link::Link, result};
use crate::{
    context::ToolContext,
    error::ToolError,
    tool::{Tool, ToolOrigin, ToolSpec},
};

/// The most times that a call is sent to a busy server.
const BUSY_TRIES: u32 = 3;
/// The most times that a call is sent when a restarted server does not know the connection.
const LOST_TRIES: u32 = 2;

/// A tool of an MCP server.
pub(super) struct McpTool {
    link: Arc<Link>,
    /// The server's name of the tool.
    name: String,
    spec: ToolSpec,
}

impl McpTool {
    pub(super) fn new(link: Arc<Link>, name: String, spec: ToolSpec) -> Self {
        Self { link, name, spec }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn origin(&self) -> ToolOrigin {
        ToolOrigin::Mcp
    }

    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError> {
        // The client sends trees, which have such a number as another number: not the number that a person approved.
        if let Some(number) = input.inexact_number() {
            return Err(ToolError::Failed(format!(
                "The tool was not run: a tool of an MCP server gets numbers of 64 bits, and {number} has more digits. \
                 Use fewer digits, or a string if the tool takes one."
            )));
        }
        let Value::Object(arguments) = input.to_value() else {
            return Err(ToolError::Failed("The arguments are no object.".to_owned()));
        };
        let name = &self.link.options.name;
        let mut tries = 1;
        let mut may_have_run = false;
        loop {
            if !may_have_run {
                context.wait.begin(format!("MCP server `{name}`"));
            }
            let lost = match self.call(&arguments, &context).await? {
                Ok(answer) => {
                    let (answer, events) = result::events(answer);
                    emit(&context, events);
                    return result::output(name, answer);
                }
                Err(lost) => lost,
            };
            may_have_run |= !lost.why.was_not_called();
            if tries >= lost.max_tries {
                return Err(lost.why.to_tool_error(name, &self.spec.effect));
            }
            // The server was restarted since the last call, or is busy.
            tokio::time::sleep(lost.why.pause()).await;
            tries += 1;
        }
    }
}

/// Adds the events of a result to the turn. Events that tools may not emit are left out, because the tool has run.
fn emit(context: &ToolContext, taken: ToolResultEvents) {
    let emit = |(event_type, data)| context.events.emit(event_type, &data).err();
    let refused = taken.events.into_iter().filter_map(emit);
    let refused = refused.map(|error| error.to_string());
    for reason in taken.left_out.into_iter().chain(refused) {
        let execution_id = &context.execution_id;
        tracing::warn!(
            execution_id,
            reason,
            "an event in a tool's result was left out"
        );
    }
}

/// A call without an answer.
struct Lost {
    why: CallError,
    /// The most times that the call is sent. More than once only when the tool was certainly not called, or may run twice.
    max_tries: u32,
}

impl McpTool {
    /// Refuses to call a tool whose definition has changed at the server. The server may have restarted since the
    /// tool was found, and the model made the call for the old definition.
    fn check_unchanged(&self) -> Result<(), ToolError> {
        let (tool, tools) = (&self.spec.name, self.link.known());
        match tools.get(tool) {
            Some(listed) if listed.spec().is_defined_as(&self.spec) => Ok(()),
            _ => Err(ToolError::Failed(format!(
                "The definition of tool `{tool}` has just changed. The tool was not run. Read the new definition, and \
                 call the tool again if you still need a result."
            ))),
        }
    }

    /// Sends the call once, and ends a broken connection. The outer error is for the model: there is no connection.
    async fn call(
        &self,
        arguments: &JsonObject,
        context: &ToolContext,
    ) -> Result<Result<ServerResult, Lost>, ToolError> {
        let link = &self.link;
        let connection = link.connection().await?;
        self.check_unchanged()?;
        let _slot = link.slots.take(&context.stored_conversation_id).await;
        context.wait.end();
        let answer = connection
            .call(&self.name, arguments.clone(), context, &link.options)
            .await;
        let why = match answer {
            Ok(answer) => return Ok(Ok(answer)),
            Err(why) => why,
        };
        tracing::warn!(
            server = link.options.name,
            tool = self.name,
            error = ?why,
            "a call of an MCP tool failed"
        );
        let was_refused_by_stranger = why.may_mean_session() && !connection.is_alive().await;
        if why.is_of_connection() || was_refused_by_stranger {
            connection.end();
        }
        let may_run_twice = self.spec.effect.may_run_again();
        let max_tries = if why.may_pass() && (why.was_not_called() || may_run_twice) {
            BUSY_TRIES
        } else if why.is_lost_connection() || (was_refused_by_stranger && may_run_twice) {
            LOST_TRIES
        } else {
            1
        };
        Ok(Err(Lost { why, max_tries }))
    }
}
