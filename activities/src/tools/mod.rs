//! The port to tools, the registry that finds them and checks their arguments, and the kinds of tools.
//!
//! - [`names`]: what tools may be called
//! - `checked`: a tool whose name and schema were checked, which checks arguments
//! - `registry`: the worker's own tools, and sources of tools that may change
//! - `caller`: for whom a tool runs, in the words of each kind
//! - `progress`: how far a call is; `events`: what it adds to the turn
//! - [`builtin`]: the tools every worker has
//! - `described`: tools that the client or other workers run
//! - `delegate`: the tool that starts sub-agents
//! - [`http`]: endpoints described in the configuration
//! - [`mcp`]: tools of MCP servers
//! - [`skills`]: folders of instructions
//! - [`TypedTool`]: tools in Rust, with a typed input
//! - [`content`], [`process`]: for tools that give bytes or run programs; `excerpt`: for long texts

pub mod builtin;
mod caller;
mod checked;
pub mod content;
pub mod delegate;
mod described;
mod events;
mod excerpt;
pub mod http;
pub mod mcp;
pub mod names;
pub mod process;
mod progress;
mod registry;
pub mod skills;
mod typed;

use std::time::Duration;

use async_trait::async_trait;
use everturn_proto::{Json, ids, words::DEFAULT_TENANT};
use tokio_util::sync::CancellationToken;

pub use everturn_proto::words::Effect;

pub use checked::{CheckedTool, RegisterError};
pub(crate) use checked::{compile as compile_schema, problems};
pub use described::{DescribedTool, RunBy};
pub use events::ToolEvents;
pub use progress::Progress;
pub use registry::{ToolRegistry, ToolSet, ToolSource, UnknownTool};
pub use typed::{TypedTool, typed};

/// A tool an agent can use.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model is told about it.
    fn spec(&self) -> &ToolSpec;

    /// Where the tool comes from. Shown to people.
    fn origin(&self) -> ToolOrigin {
        ToolOrigin::BuiltIn
    }

    /// Runs it and returns its result. `input` fits the schema. Dropping the future ends it; a tool with work outside
    /// the future watches `context.cancellation`.
    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError>;
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
    /// Whether it is over at once, at the latest after [`INLINE_LIMIT_MS`](everturn_proto::limits::INLINE_LIMIT_MS). Such a
    /// tool costs no round trip to the engine. One that takes longer is stopped, and its result is an error.
    pub is_inline: bool,
}

impl ToolSpec {
    /// Returns the hash of the definition: of all that the model and a person who approves a call go by, and of what a
    /// retry may do.
    pub fn definition_hash(&self) -> String {
        let (name, description) = (&self.name, &self.description);
        ids::tool_definition_hash(name, description, &Json::of(&self.parameters), &self.effect)
    }
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

/// Who asks for tools. What a source has for one may not be what it has for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker<'a> {
    /// The tenant of the conversation, as the store knows it.
    pub tenant_id: &'a str,
    /// The name of the agent that is offered the tools, or calls one.
    pub agent: &'a str,
}

/// What a tool is told about its call. For whom it runs (tenant, owner, agent) is what the store says, whatever a model or a
/// message claims.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The tenant of the conversation.
    pub tenant_id: String,
    /// The owner of the conversation, when it has one.
    pub owner_id: Option<String>,
    /// The name of the agent that calls.
    pub agent: String,
    /// The conversation, as its tenant names it: the id that the API has.
    pub conversation_id: String,
    /// The id by which the store has the conversation. No conversation of another tenant has the same.
    pub stored_conversation_id: String,
    /// The message whose turn it is.
    pub message_id: String,
    /// The agent execution that calls: the turn, or a sub-agent's part of it.
    pub agent_execution_id: String,
    /// How deep it is: 0 for the turn's own agent, 1 for a sub-agent of it, and so on.
    pub depth: u32,
    /// The id of this tool execution, the same on every attempt.
    pub execution_id: String,
    /// The model's id of the call (`tool_call_id`).
    pub call_id: String,
    /// A key to pass on to systems that know idempotency keys.
    pub idempotency_key: String,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Cancelled with the turn.
    pub cancellation: CancellationToken,
    /// Where a tool that takes long may say how far it is.
    pub progress: Progress,
    /// Where a tool may add events to its turn.
    pub events: ToolEvents,
}

impl ToolContext {
    /// Who calls.
    pub fn asker(&self) -> Asker<'_> {
        Asker {
            tenant_id: &self.tenant_id,
            agent: &self.agent,
        }
    }

    /// The context of a call that belongs to no turn: for tests of tools, and for tools that a person calls by hand.
    pub fn by_hand() -> Self {
        const NO_TURN: &str = "by-hand";
        let unique = uuid::Uuid::new_v4().simple().to_string();
        Self {
            tenant_id: DEFAULT_TENANT.to_owned(),
            owner_id: None,
            agent: NO_TURN.to_owned(),
            conversation_id: NO_TURN.to_owned(),
            stored_conversation_id: NO_TURN.to_owned(),
            message_id: NO_TURN.to_owned(),
            agent_execution_id: NO_TURN.to_owned(),
            depth: 0,
            execution_id: format!("exec_{}", &unique[..12]),
            call_id: format!("call_{unique}"),
            idempotency_key: format!("{NO_TURN}/{unique}"),
            attempt: 1,
            cancellation: CancellationToken::new(),
            progress: Progress::default(),
            events: ToolEvents::default(),
        }
    }
}

/// Why a tool failed, in a sentence the model can read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// A known failure: it is recorded and never retried.
    #[error("{0}")]
    Failed(String),
    /// The tool had no effect and may work later. A `read` or `idempotent` tool is tried again; for a `once` tool it is
    /// a known failure.
    #[error("{message}")]
    Unavailable {
        /// What happened.
        message: String,
        /// How long the other side asks to wait. Without it, the engine's own pause holds.
        retry_after: Option<Duration>,
    },
    /// The tool was called, and its answer was lost: it may or may not have had its effect. A `read` or `idempotent`
    /// tool is tried again; the outcome of a `once` tool is reported as unknown (invariant 6, done once).
    #[error("{0}")]
    Interrupted(String),
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of tools share.

    use std::sync::Arc;

    use async_trait::async_trait;
    use everturn_proto::Json;
    use serde_json::Value;

    use super::{CheckedTool, Effect, Tool, ToolContext, ToolError, ToolSpec};
    use crate::egress::{Egress, EgressPolicy};

    /// A client that may connect to loopback.
    pub(crate) fn egress() -> Egress {
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let mut policy = EgressPolicy::default();
        policy.allow("127.0.0.1").unwrap();
        Egress::new(policy).unwrap()
    }

    /// The context of a first attempt.
    pub(crate) fn context() -> ToolContext {
        ToolContext {
            conversation_id: "c".into(),
            stored_conversation_id: "c".into(),
            message_id: "m".into(),
            agent_execution_id: "run_1".into(),
            execution_id: "exec_0123456789ab".into(),
            call_id: "call_1".into(),
            idempotency_key: "c/m/exec_0123456789ab".into(),
            ..ToolContext::by_hand()
        }
    }

    /// Checks the input and runs the tool. Returns its result and its events, or the error as the model reads it.
    pub(crate) async fn call(
        tool: &CheckedTool,
        input: Value,
    ) -> Result<(Value, Vec<(String, Value)>), String> {
        tool.validate(&Json::of(&input))?;
        let context = context();
        let events = context.events.clone();
        let result = tool.tool().run(context, Json::of(&input)).await;
        let result = result.map_err(|error| error.to_string())?.to_value();
        let events = events.take().into_iter();
        let events = events.map(|(event_type, data)| (event_type.into(), data.to_value()));
        Ok((result, events.collect()))
    }

    struct Fake(ToolSpec);

    #[async_trait]
    impl Tool for Fake {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        async fn run(&self, _: ToolContext, input: Json) -> Result<Json, ToolError> {
            Ok(input)
        }
    }

    /// A tool that gives back its input.
    pub(crate) fn fake(name: &str, parameters: serde_json::Value) -> Arc<dyn Tool> {
        Arc::new(Fake(ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters,
            effect: Effect::Read,
            is_inline: false,
        }))
    }
}
