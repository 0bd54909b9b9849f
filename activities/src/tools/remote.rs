//! Tools that a worker of the operator's own runs, in any Temporal SDK's language. Only described here.

use async_trait::async_trait;
use everturn_proto::Json;

use super::{Tool, ToolContext, ToolError, ToolSpec};

/// A tool of another worker, as the operator describes it.
#[derive(Debug, Clone)]
pub struct RemoteTool(pub ToolSpec);

#[async_trait]
impl Tool for RemoteTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn run(&self, _: ToolContext, _: Json) -> Result<Json, ToolError> {
        Err(ToolError::Failed(
            "this tool is run by a worker of its own, through the engine".to_owned(),
        ))
    }
}
