//! The port to tools, the registry that finds them and checks their arguments, and the kinds of tools.
//!
//! - [`names`]: what tools may be called
//! - `checked`: a tool whose name and schema were checked, which checks arguments
//! - `registry`: the worker's own tools, and sources whose tools come and go
//! - `progress`: how far a call is
//! - [`builtin`]: the tools every worker has
//! - `client`: tools that run at the client
//! - `remote`: tools that other workers run
//! - `delegate`: the tool that starts sub-agents
//! - [`http`]: endpoints described in the configuration
//! - [`mcp`]: tools of MCP servers
//! - [`skills`]: folders of instructions
//! - [`TypedTool`]: tools in Rust, with a typed input
//! - [`content`], [`process`]: for tools that give bytes or run programs

pub mod builtin;
mod checked;
mod client;
pub mod content;
pub mod delegate;
pub mod http;
pub mod mcp;
pub mod names;
pub mod process;
mod progress;
mod registry;
mod remote;
pub mod skills;
mod typed;

use std::time::Duration;

use async_trait::async_trait;
use everturn_proto::{Json, words::EventType};
use tokio_util::sync::CancellationToken;

pub use everturn_proto::words::Effect;

pub use checked::{CheckedTool, RegisterError};
pub use client::ClientTool;
pub use progress::Progress;
pub use registry::{ToolRegistry, ToolSet, ToolSource, UnknownTool};
pub use remote::RemoteTool;
pub use typed::{TypedTool, typed};

/// A tool an agent can use.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model is told about it.
    fn spec(&self) -> &ToolSpec;

    /// Where it comes from, for people.
    fn origin(&self) -> ToolOrigin {
        ToolOrigin::BuiltIn
    }

    /// Runs it. `input` fits the schema. Dropping the future ends it; a tool with work outside the future
    /// watches `context.cancellation`.
    async fn run(&self, context: ToolContext, input: Json) -> Result<ToolOutput, ToolError>;
}

/// A tool as the model sees it, and what the runtime must know about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64 of them (what providers take).
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its input.
    pub parameters: serde_json::Value,
    /// What a retry may do.
    pub effect: Effect,
}

/// Where a tool comes from. Who runs it is another question, which `everturn_proto::words::ToolKind` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOrigin {
    /// Part of the worker's binary: one that every worker has, or a user's own.
    BuiltIn,
    /// An endpoint described in the configuration.
    Http,
    /// A tool of an MCP server.
    Mcp,
    /// A folder of instructions.
    Skill,
}

impl ToolOrigin {
    /// In a word or two, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Http => "HTTP",
            Self::Mcp => "MCP server",
            Self::Skill => "skill",
        }
    }
}

/// What a tool is told about its call (D1).
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The conversation.
    pub conversation_id: String,
    /// The message whose turn it is.
    pub message_id: String,
    /// Our id of this execution, the same on every attempt.
    pub execution_id: String,
    /// The model's id of the call (`tool_call_id`).
    pub call_id: String,
    /// To be passed on to systems that know idempotency keys.
    pub idempotency_key: String,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Cancelled with the turn.
    pub cancellation: CancellationToken,
    /// Where a tool that takes long may say how far it is.
    pub progress: Progress,
}

/// What a tool gives back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// The result for the model.
    pub result: Json,
    /// Events that are saved before the tool's observe, with their data. Only the types that
    /// [`EventType::may_be_emitted_by_tools`] names are saved.
    pub events: Vec<(EventType, Json)>,
}

impl ToolOutput {
    /// A result without events.
    pub fn of(result: &impl serde::Serialize) -> Self {
        Self {
            result: Json::of(result),
            events: Vec::new(),
        }
    }

    /// The events that a tool may emit. All others are the runtime's own account of the turn: a tool that could write
    /// one could forge, for example, the turn's end.
    pub(crate) fn allowed_events(events: Vec<(EventType, Json)>) -> Vec<(EventType, Json)> {
        let is_allowed = |(event_type, _): &(EventType, Json)| {
            let is_allowed = event_type.may_be_emitted_by_tools();
            if !is_allowed {
                tracing::warn!(%event_type, "a tool emitted an event that is not a tool's; it is left out");
            }
            is_allowed
        };
        events.into_iter().filter(is_allowed).collect()
    }
}

/// Why a tool failed, in a sentence the model can read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// A known failure: it is recorded and never retried.
    #[error("{0}")]
    Failed(String),
    /// It had no effect and may work later: a `read` or `idempotent` tool is tried again, else it is a known failure.
    #[error("{message}")]
    Unavailable {
        /// What happened.
        message: String,
        /// How long the other side asks to wait; the engine's own pause when it does not say.
        retry_after: Option<Duration>,
    },
    /// It was asked, and its answer was lost: it may or may not have had its effect. A `read` or `idempotent` tool is
    /// tried again, the outcome of a `once` tool is reported as unknown (invariant 6).
    #[error("{0}")]
    Interrupted(String),
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of tools share.

    use std::sync::Arc;

    use async_trait::async_trait;
    use everturn_proto::Json;

    use super::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

    struct Fake(ToolSpec);

    #[async_trait]
    impl Tool for Fake {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        async fn run(&self, _: ToolContext, input: Json) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput {
                result: input,
                events: Vec::new(),
            })
        }
    }

    /// A tool that gives back its input.
    pub(crate) fn fake(name: &str, parameters: serde_json::Value) -> Arc<dyn Tool> {
        Arc::new(Fake(ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters,
            effect: Effect::Read,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_emits_only_what_a_tool_may_emit() {
        let unknown = EventType::Unknown("from_the_future".to_owned());
        let every: Vec<EventType> = EventType::ALL.iter().cloned().chain([unknown]).collect();
        let events = every
            .iter()
            .map(|event_type| (event_type.clone(), Json::default()));
        let allowed = ToolOutput::allowed_events(events.collect());
        let allowed: Vec<&str> = allowed.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(
            allowed,
            [
                "work_plan",
                "step_start",
                "step_end",
                "pattern_match",
                "skill_matched",
                "skill_execution_start",
                "skill_execution_complete"
            ]
        );
    }
}
