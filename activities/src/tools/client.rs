//! Tools that run at the client: a file on the user's laptop, a dialog in their browser. Only described here.

use async_trait::async_trait;
use everturn_proto::Json;

use super::{Tool, ToolContext, ToolError, ToolSpec};

/// A tool of the client, as the operator describes it.
#[derive(Debug, Clone)]
pub struct ClientTool(pub ToolSpec);

#[async_trait]
impl Tool for ClientTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn run(&self, _: ToolContext, _: Json) -> Result<Json, ToolError> {
        Err(ToolError::Failed(
            "this tool runs at the client, not at a worker".to_owned(),
        ))
    }
}
