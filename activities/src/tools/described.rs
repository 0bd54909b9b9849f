//! Tools that run somewhere else: at the client (a file on the user's laptop, a dialog in their browser), or at a worker
//! of the operator's own, in any Temporal SDK's language. A worker of ours only describes them to the model, and checks
//! arguments.

use async_trait::async_trait;
use everturn_proto::Json;

use super::{Tool, ToolContext, ToolError, ToolSpec};

/// A tool as the operator describes it. The workflow has it run where it belongs, and never calls it here.
#[derive(Debug, Clone)]
pub struct DescribedTool {
    /// What the model is told about it.
    pub spec: ToolSpec,
    /// Who runs it.
    pub run_by: RunBy,
}

/// Who runs a tool that is only described here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunBy {
    /// The client, which posts the result.
    Client,
    /// A worker of the operator's own.
    OtherWorker,
}

#[async_trait]
impl Tool for DescribedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, _: ToolContext, _: Json) -> Result<Json, ToolError> {
        let reason = match self.run_by {
            RunBy::Client => "this tool runs at the client, not at a worker",
            RunBy::OtherWorker => "this tool is run by a worker of its own, through the engine",
        };
        Err(ToolError::Failed(reason.to_owned()))
    }
}
