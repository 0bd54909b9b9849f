//! An MCP server as a source of tools, for the tenants and agents that may use the server.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_proto::Json;

use super::{
    options::ServerOptions,
    pool::{LinkGuard, Pool},
    status::{self, ServerState, ServerStatus},
};
use crate::{
    checked::CheckedTool,
    context::{Asker, ToolContext},
    egress::Egress,
    error::ToolError,
    registry::{ToolSet, ToolSource},
    tool::{Tool, ToolOrigin, ToolSpec},
};

/// An MCP server as a source of tools.
pub struct McpServer {
    pool: Arc<Pool>,
}

impl McpServer {
    /// Creates a source that connects at first use. Requests for the server's tokens go through `egress`.
    pub fn new(options: ServerOptions, egress: Egress) -> Self {
        Self {
            pool: Pool::new(options, egress),
        }
    }

    /// Connects once in the name of the tenant, and returns the state of the server.
    pub async fn status(&self, tenant_id: &str) -> ServerStatus {
        match self.pool.link(tenant_id) {
            Ok((link, _in_use)) => link.status().await,
            Err(error) => ServerStatus {
                name: self.pool.options().name.clone(),
                address: self.pool.options().location.address(),
                took: Duration::ZERO,
                state: ServerState::Unavailable {
                    reason: error.to_string(),
                    output: Vec::new(),
                },
            },
        }
    }
}

#[async_trait]
impl ToolSource for McpServer {
    async fn tools(&self, asker: Asker<'_>) -> Arc<ToolSet> {
        if !self.pool.options().serves(asker) {
            return Arc::default();
        }
        match self.pool.link(asker.tenant_id) {
            Ok((link, _in_use)) => link.tools().await,
            Err(_no_room) => Arc::default(),
        }
    }

    async fn find(&self, name: &str, asker: Asker<'_>) -> Result<CheckedTool, ToolError> {
        let gone = || {
            let server = &self.pool.options().name;
            ToolError::Failed(format!(
                "MCP server `{server}` has no tool with this name now. Use only the tools that you were given."
            ))
        };
        if !self.pool.options().serves(asker) {
            return Err(gone());
        }
        let (link, guard) = self.pool.link(asker.tenant_id)?;
        if !link.known().contains_key(name) {
            link.connection().await?;
        }
        let tool = link.known().get(name).cloned().ok_or_else(gone)?;
        Ok(tool.with(|tool| {
            Arc::new(InUse {
                tool,
                _guard: guard,
            })
        }))
    }

    async fn note(&self, asker: Asker<'_>) -> Option<String> {
        if !self.pool.options().serves(asker) {
            return None;
        }
        match self.pool.link(asker.tenant_id) {
            Ok((link, _in_use)) => link.note(),
            Err(_no_room) => Some(status::missing(&self.pool.options().name)),
        }
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

/// A tool that keeps its link open while a caller holds the tool.
struct InUse {
    tool: Arc<dyn Tool>,
    _guard: LinkGuard,
}

#[async_trait]
impl Tool for InUse {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn origin(&self) -> ToolOrigin {
        self.tool.origin()
    }

    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError> {
        self.tool.run(context, input).await
    }
}
