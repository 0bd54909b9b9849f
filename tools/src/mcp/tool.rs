//! A tool of a server, as called by the runtime.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_proto::{Json, ToolResultEvents};
use rmcp::model::{CallToolRequestParams, JsonObject, ServerResult};
use serde_json::Value;

use super::{
    error::CallError,
    link::Link,
    options::ServerOptions,
    questions::{Dialog, Questions},
    result,
};
use crate::{
    context::ToolContext,
    error::ToolError,
    question::Question,
    tool::{Tool, ToolOrigin, ToolSpec},
};

/// The most times that a call is sent to a busy server.
const BUSY_TRIES: u32 = 3;
/// The most times that a call is sent when a restarted server does not know the connection.
const LOST_TRIES: u32 = 2;
/// The pause before a call goes back to a server that wants its state again.
const STATE_PAUSE: Duration = Duration::from_secs(1);

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
        let dialog = Dialog::with(context.answered.as_ref())?;
        let mut tries = 1;
        let mut may_have_run = false;
        loop {
            if let Some(question) = dialog.next(name)? {
                return Err(self.asks(question));
            }
            if !may_have_run {
                context.wait.begin(format!("MCP server `{name}`"));
            }
            let lost = match self.call(&arguments, &context, &dialog).await? {
                Ok(answer) if dialog.take(&answer) => {
                    if dialog.is_put_off() {
                        if tries >= BUSY_TRIES {
                            return Err(busy(name));
                        }
                        tokio::time::sleep(STATE_PAUSE).await;
                        tries += 1;
                    }
                    continue;
                }
                Ok(answer) => {
                    self.check_question(&dialog)?;
                    let (answer, events) = result::events(answer);
                    emit(&context, events);
                    return result::output(answer);
                }
                Err(lost) => lost,
            };
            if lost.why.is_answer() {
                self.check_question(&dialog)?;
            }
            if let Some(question) = lost.why.question(&dialog) {
                return Err(self.asks(question));
            }
            if lost.why.refuses_params() && dialog.restart() {
                continue;
            }
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

/// Returns the error of a server that has wanted its state again too often.
fn busy(server: &str) -> ToolError {
    ToolError::Unavailable {
        message: format!("MCP server `{server}` put the call off {BUSY_TRIES} times."),
        retry_after: None,
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

    /// Returns the error with the question of a server that has ended the call without an effect.
    fn asks(&self, question: Question) -> ToolError {
        let ServerOptions {
            name, questions, ..
        } = &self.link.options;
        match questions {
            Questions::None => ToolError::Failed(format!(
                "MCP server `{name}` asks a person, and the configuration lets the server ask nobody (`questions`)."
            )),
            Questions::Repeatable | Questions::All => ToolError::Asks(Box::new(question)),
        }
    }

    /// Returns the question as an error if the server asked in the middle of the ended call, and the call may be made again.
    fn check_question(&self, dialog: &Dialog) -> Result<(), ToolError> {
        let Some(question) = dialog.open_question() else {
            return Ok(());
        };
        let may_ask = match self.link.options.questions {
            Questions::None => false,
            Questions::Repeatable => self.spec.effect.may_run_again(),
            Questions::All => true,
        };
        if may_ask {
            return Err(ToolError::Asks(Box::new(question)));
        }
        tracing::warn!(
            server = self.link.options.name,
            tool = self.name,
            "a tool that must not run twice asked a person in the middle of its call, and got the answer \"cancel\"; \
             if the server's tools have no effect before they ask, set `questions = \"all\"`"
        );
        Ok(())
    }

    /// Sends the call once, and ends a broken connection. The outer error is for the model: there is no connection.
    async fn call(
        &self,
        arguments: &JsonObject,
        context: &ToolContext,
        dialog: &Dialog,
    ) -> Result<Result<ServerResult, Lost>, ToolError> {
        let link = &self.link;
        let connection = link.connection().await?;
        self.check_unchanged()?;
        let _slot = link.slots.take(&context.stored_conversation_id).await;
        context.wait.end();
        let params =
            CallToolRequestParams::new(self.name.clone()).with_arguments(arguments.clone());
        let answer = connection
            .call(params, context, &link.options, dialog)
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
