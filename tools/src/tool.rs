//! The port to a tool: its definition, its origin, and its run.

use async_trait::async_trait;
use everturn_proto::{Json, ids, words::Effect};

use crate::{context::ToolContext, error::ToolError};

/// A tool that an agent can use.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the definition of the tool, with its description for the model.
    fn spec(&self) -> &ToolSpec;

    /// Returns the origin of the tool, for people.
    fn origin(&self) -> ToolOrigin {
        ToolOrigin::BuiltIn
    }

    /// Runs the tool and returns its result. `input` fits the schema. Dropping the future ends the run. A tool with
    /// work outside the future watches `context.cancellation`.
    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError>;
}

/// The definition of a tool for the model, and its settings for the runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The tool's name: at most 64 letters, digits, `_` and `-`, as providers require.
    pub name: String,
    /// The purpose of the tool, for the model.
    pub description: String,
    /// The JSON schema of the input.
    pub parameters: serde_json::Value,
    /// The effect, which decides whether a retry may run the tool again.
    pub effect: Effect,
    /// True for a tool that ends quickly, at most after [`INLINE_LIMIT_MS`](everturn_proto::limits::INLINE_LIMIT_MS).
    /// An inline tool costs no round trip to the engine. A slower run is stopped and recorded as an error.
    pub is_inline: bool,
}

impl ToolSpec {
    /// Returns the hash of the definition: of everything that the model and an approving person rely on, and of the
    /// effect.
    pub fn definition_hash(&self) -> String {
        let (name, description) = (&self.name, &self.description);
        ids::tool_definition_hash(name, description, &Json::of(&self.parameters), &self.effect)
    }
}

/// The origin of a tool. `everturn_proto::words::ToolKind` answers a different question: who runs the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOrigin {
    /// A tool in the worker's binary: built in, or added by the operator.
    BuiltIn,
    /// An endpoint described in the configuration.
    Http,
    /// A tool of an MCP server.
    Mcp,
    /// A folder of instructions.
    Skill,
}

impl ToolOrigin {
    /// Returns one or two words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Http => "HTTP",
            Self::Mcp => "MCP server",
            Self::Skill => "skill",
        }
    }
}
