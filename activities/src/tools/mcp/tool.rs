//! A tool of a server as the runtime calls it.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_proto::Json;
use serde_json::Value;

use super::{result, server::Inner};
use crate::tools::{Tool, ToolContext, ToolError, ToolKind, ToolOutput, ToolSpec};

/// One tool of an MCP server.
pub(super) struct McpTool {
    server: Arc<Inner>,
    /// Its name at the server.
    name: String,
    spec: ToolSpec,
}

impl McpTool {
    pub(super) fn new(server: Arc<Inner>, name: String, spec: ToolSpec) -> Self {
        Self { server, name, spec }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Mcp
    }

    async fn run(&self, context: ToolContext, input: Json) -> Result<ToolOutput, ToolError> {
        let Value::Object(arguments) = input.to_value() else {
            return Err(ToolError::Failed("The arguments are no object.".to_owned()));
        };
        let server = &self.server;
        let connection = server.connection().await?;
        let _one_of_few = server.permit().await?;
        let answer = connection
            .call(&self.name, arguments, &context, server.options.idle_timeout)
            .await;
        match answer {
            Ok(answer) => result::output(&server.options.name, answer),
            Err(error) => {
                if result::is_broken(&error) {
                    connection.end();
                }
                tracing::warn!(
                    server = server.options.name,
                    tool = self.name,
                    ?error,
                    "a call of an MCP tool failed"
                );
                Err(result::failure(
                    &server.options.name,
                    self.spec.effect,
                    &error,
                ))
            }
        }
    }
}
