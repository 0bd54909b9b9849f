//! An MCP server as a source of tools.

use std::sync::Arc;

use async_trait::async_trait;

use super::{catalog, link::Link, options::ServerOptions};
use crate::tools::{CheckedTool, ToolError, ToolSet, ToolSource};

/// An MCP server as a source of tools.
pub struct McpServer {
    link: Arc<Link>,
}

impl McpServer {
    /// A server that is not connected to before it is needed.
    pub fn new(options: ServerOptions) -> Self {
        Self {
            link: Link::new(options, catalog::tools),
        }
    }
}

#[async_trait]
impl ToolSource for McpServer {
    async fn tools(&self) -> Arc<ToolSet> {
        self.link.tools().await
    }

    async fn find(&self, name: &str) -> Result<CheckedTool, ToolError> {
        if let Some(tool) = self.link.known().get(name) {
            return Ok(tool.clone());
        }
        self.link.connection().await?;
        let server = &self.link.options.name;
        self.link.known().get(name).cloned().ok_or_else(|| {
            ToolError::Failed(format!(
                "MCP server `{server}` has no tool of this name now. Use only those you were given."
            ))
        })
    }

    async fn close(&self) {
        self.link.close().await;
    }
}
