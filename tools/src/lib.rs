//! The port to tools, the registry that finds tools and checks arguments, and the kinds of tools.
//!
//! - [`names`]: valid names of tools
//! - `checked`: a tool with a checked name and schema, which checks arguments
//! - `registry`: the worker's own tools, and sources of changing tools
//! - `caller`: the caller of a tool, in the format of each kind of tool
//! - `progress`: the progress of a call; `events`: events that a call adds to the turn
//! - [`builtin`]: the tools of every worker
//! - `described`: tools that run at the client or at other workers
//! - `delegate`: the tool that starts sub-agents
//! - [`http`]: endpoints described in the configuration
//! - [`mcp`]: tools of MCP servers
//! - [`skills`]: folders of instructions
//! - [`TypedTool`]: tools in Rust, with a typed input
//! - [`egress`]: the addresses to which tools may connect
//! - [`content`], [`process`]: for tools that return bytes or run programs; `excerpt`: for long texts
//!
//! Must not be here: a tool execution as a part of a turn, with its claim, deadline and record (`everturn-activities`).

pub mod builtin;
mod caller;
mod checked;
pub mod content;
pub mod delegate;
mod described;
pub mod egress;
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
pub use described::{DescribedTool, RunBy};
pub use events::ToolEvents;
pub use progress::Progress;
pub use registry::{ToolRegistry, ToolSet, ToolSource, UnknownTool};
pub use typed::{TypedTool, typed};

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

/// The tenant and agent that ask for tools. A source may return different tools for every asker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker<'a> {
    /// The tenant of the conversation, as stored.
    pub tenant_id: &'a str,
    /// The name of the agent that is offered the tools or calls a tool.
    pub agent: &'a str,
}

/// The context of a tool call. Tenant, owner and agent come from the store, whatever a model or a message claims.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The tenant of the conversation.
    pub tenant_id: String,
    /// The owner of the conversation, if any.
    pub owner_id: Option<String>,
    /// The name of the calling agent.
    pub agent: String,
    /// The tenant's name of the conversation: its id in the API.
    pub conversation_id: String,
    /// The id of the conversation in the store, unique among all tenants.
    pub stored_conversation_id: String,
    /// The user message of the turn.
    pub message_id: String,
    /// The calling agent execution: the turn's own, or a sub-agent's.
    pub agent_execution_id: String,
    /// The depth of the agent execution: 0 for the turn's own agent, 1 for its sub-agent, and so on.
    pub depth: u32,
    /// The id of this tool execution, identical on every attempt.
    pub execution_id: String,
    /// The model's id of the call (`tool_call_id`).
    pub call_id: String,
    /// The key for systems that support idempotency keys.
    pub idempotency_key: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The token that is cancelled with the turn.
    pub cancellation: CancellationToken,
    /// Receives progress reports of long-running tools.
    pub progress: Progress,
    /// Receives events from the tool for the turn.
    pub events: ToolEvents,
}

impl ToolContext {
    /// Returns the tenant and agent of the call.
    pub fn asker(&self) -> Asker<'_> {
        Asker {
            tenant_id: &self.tenant_id,
            agent: &self.agent,
        }
    }

    /// Returns the context of a call outside any turn: for tests of tools, and for calls by hand.
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

/// A failure of a tool, as a sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// A known failure, which is recorded and never retried.
    #[error("{0}")]
    Failed(String),
    /// The tool had no effect and may work later. A `read` or `idempotent` tool is tried again. For a `once` tool the
    /// error counts as a known failure.
    #[error("{message}")]
    Unavailable {
        /// The description of the failure.
        message: String,
        /// The wait requested by the called system. `None` means the engine's own pause.
        retry_after: Option<Duration>,
    },
    /// The tool was called, but its answer was lost; the effect may have happened. A `read` or `idempotent` tool is
    /// tried again. The outcome of a `once` tool is reported as unknown (invariant 6, done once).
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
