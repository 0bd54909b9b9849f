//! The words on the wire: the types of statuses, event types and kinds, and the names of signals, queries and search
//! attributes.
//!
//! On the wire and in the database a word is text, because an old reader must survive a new word. In code a group of
//! words is an enum with a last variant `Unknown`, which keeps the text of a word unknown to this version. Every rule
//! about words is a method of the enum, so the enum also decides the meaning of an unknown word.

#[macro_use]
mod word;

mod approvals;
mod audit;
mod event_types;
mod failures;
mod plans;
mod refusals;
mod tools;
mod turns;

pub use self::{
    approvals::{
        AnswersFrom, ApprovalBy, ApprovalRefusal, ApprovalState, Decision, OPERATOR,
        OnDefinitionChange, THROUGH_ENGINE,
    },
    audit::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind},
    event_types::EventType,
    failures::FailureCode,
    plans::PlanStepStatus,
    refusals::PayloadRefusal,
    tools::{
        DELEGATE_TOOL, Effect, FIND_TOOLS_TOOL, Hook, READ_RESULT_TOOL, ToolKind, ToolOutcome,
        ToolStatus, remote_failure,
    },
    turns::{
        AgentExecutionStatus, CheckpointType, ConversationStatus, FinishReason, MessageRole,
        OnBusy, OnCutReply, OnFullContext, WaitingFor,
    },
};

/// The default task queue of workers.
pub const TASK_QUEUE: &str = "everturn";

/// Returns the task queue of workers that make only LLM calls, named after the workflows' task queue.
pub fn model_queue(task_queue: &str) -> String {
    format!("{task_queue}-models")
}

/// Returns the task queue of workers that run only tools, named after the workflows' task queue.
pub fn tool_queue(task_queue: &str) -> String {
    format!("{task_queue}-tools")
}

/// The tenant of a conversation without a given tenant.
pub const DEFAULT_TENANT: &str = "default";
/// The agent of a conversation without a given agent.
pub const DEFAULT_AGENT: &str = "default";

/// Keyword search attributes of every turn; `everturn migrate` and each worker's start register the attributes.
pub mod search_attribute {
    /// The conversation's id.
    pub const CONVERSATION_ID: &str = "ConversationId";
    /// The name of the agent that answers.
    pub const AGENT_NAME: &str = "AgentName";
    /// The tenant's id.
    pub const TENANT_ID: &str = "TenantId";
    /// The turn's status. The attribute changes only at the start of the turn and when a wait for a person begins or
    /// ends, because every change is a history event.
    pub const TURN_STATUS: &str = "TurnStatus";
    /// All search attributes.
    pub const ALL: [&str; 4] = [CONVERSATION_ID, AGENT_NAME, TENANT_ID, TURN_STATUS];
}
