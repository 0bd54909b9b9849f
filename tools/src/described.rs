//! Tools that run outside this worker: at the client (a file on the user's laptop, a dialog in the browser), or at a
//! worker of the operator, written with any Temporal SDK. This worker only describes the tools to the model and
//! checks arguments.

use async_trait::async_trait;
use everturn_proto::Json;

use crate::{
    context::ToolContext,
    error::ToolError,
    tool::{Tool, ToolSpec},
};

/// A tool from the operator's description. The workflow starts the tool at the right worker or client, never here.
#[derive(Debug, Clone)]
pub struct DescribedTool {
    /// The definition of the tool.
    pub spec: ToolSpec,
    /// The party that runs the tool.
    pub run_by: RunBy,
}

/// The party that runs a described tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunBy {
    /// The client, which posts the result.
    Client,
    /// A worker of the operator.
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
