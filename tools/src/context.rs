//! The context of a tool call: the caller, the call's ids, and the handles for reports.

use everturn_proto::words::DEFAULT_TENANT;
use tokio_util::sync::CancellationToken;

use crate::{events::ToolEvents, progress::Progress, question::Answered, wait::Wait};

/// The tenant, person and agent that ask for tools. A source may return different tools for every asker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker<'a> {
    /// The tenant of the conversation, as stored.
    pub tenant_id: &'a str,
    /// The owner of the conversation, if any.
    pub owner_id: Option<&'a str>,
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
    /// True for a run as a probe, which asks whether the call with the idempotency key has happened. Every other field is
    /// the field of that call.
    pub is_probe: bool,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The token that is cancelled with the turn.
    pub cancellation: CancellationToken,
    /// The token that is cancelled when the worker begins to stop. A call that is dropped afterwards is made again by
    /// another worker, unless its effect is `once`.
    pub worker_stops: CancellationToken,
    /// Receives progress reports of long-running tools.
    pub progress: Progress,
    /// Receives events from the tool for the turn.
    pub events: ToolEvents,
    /// Why the tool has not begun, if the call waits.
    pub wait: Wait,
    /// The answer to the tool's last question; `None` before a question.
    pub answered: Option<Answered>,
}

impl ToolContext {
    /// Returns the tenant, person and agent of the call.
    pub fn asker(&self) -> Asker<'_> {
        Asker {
            tenant_id: &self.tenant_id,
            owner_id: self.owner_id.as_deref(),
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
            is_probe: false,
            attempt: 1,
            cancellation: CancellationToken::new(),
            worker_stops: CancellationToken::new(),
            progress: Progress::default(),
            events: ToolEvents::default(),
            wait: Wait::default(),
            answered: None,
        }
    }
}
