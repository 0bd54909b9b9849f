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

    /// Returns the name of the tool's probe: a tool of effect `read` that gets the input and the idempotency key of a call
    /// with an unknown outcome, and answers whether the call has happened (`docs/tools.md`, When the outcome is unknown).
    /// Only a tool of effect `once` needs a probe.
    fn probe(&self) -> Option<&str> {
        None
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
    /// The template of a call's title for people, like `Search the web for {query}` (`everturn_proto::TitleTemplate`);
    /// `None`: people see the name. The title is no part of the definition, because neither the model nor an approval
    /// relies on the title.
    pub title: Option<String>,
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

    /// Returns true if two tools differ at most in the title.
    pub fn is_defined_as(&self, other: &Self) -> bool {
        let Self {
            name,
            description,
            parameters,
            title: _,
            effect,
            is_inline,
        } = self;
        *name == other.name
            && *description == other.description
            && *parameters == other.parameters
            && *effect == other.effect
            && *is_inline == other.is_inline
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_no_part_of_the_definition() {
        let spec = ToolSpec {
            name: "pay".to_owned(),
            description: "Pays.".to_owned(),
            parameters: serde_json::json!({"type": "object"}),
            title: None,
            effect: Effect::Once,
            is_inline: false,
        };
        let titled = ToolSpec {
            title: Some("Pay {sum}".to_owned()),
            ..spec.clone()
        };
        assert_eq!(spec.definition_hash(), titled.definition_hash());
        assert!(spec.is_defined_as(&titled));
        let other = ToolSpec {
            effect: Effect::Read,
            ..titled
        };
        assert!(!spec.is_defined_as(&other));
    }
}
