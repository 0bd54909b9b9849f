//! The words that travel: the types of statuses, event types and kinds, and the names of signals, queries and search
//! attributes.
//!
//! On the wire and in the database each of them is text, so that an old reader survives a new word. In code each is an
//! enum whose last variant, `Unknown`, keeps the text of a word that this version does not know. What such a word means
//! is decided where the enum is: every rule about words is a method here.

#[macro_use]
mod word;

mod approvals;
mod audit;
mod event_types;
mod failures;
mod plans;
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
    tools::{DELEGATE_TOOL, Effect, Hook, READ_RESULT_TOOL, ToolKind, ToolStatus, remote_failure},
    turns::{
        AgentExecutionStatus, CheckpointType, ConversationStatus, FinishReason, MessageRole,
        OnBusy, OnCutReply, OnFullContext,
    },
};

/// Default task queue of workers.
pub const TASK_QUEUE: &str = "everturn";

/// The task queue of workers that make LLM calls only, beside this one of the workflows.
pub fn model_queue(task_queue: &str) -> String {
    format!("{task_queue}-models")
}

/// The task queue of workers that run tools only, beside this one of the workflows.
pub fn tool_queue(task_queue: &str) -> String {
    format!("{task_queue}-tools")
}

/// Tenant of a conversation when none is given.
pub const DEFAULT_TENANT: &str = "default";
/// Agent of a conversation when none is given.
pub const DEFAULT_AGENT: &str = "default";

/// Keyword search attributes of every turn; `everturn migrate` and each worker's start register them.
pub mod search_attribute {
    /// The conversation's id.
    pub const CONVERSATION_ID: &str = "ConversationId";
    /// The name of the agent that answers.
    pub const AGENT_NAME: &str = "AgentName";
    /// The tenant's id.
    pub const TENANT_ID: &str = "TenantId";
    /// How the turn stands. It is set at the start and when a turn waits for a person, because each change is a history
    /// event.
    pub const TURN_STATUS: &str = "TurnStatus";
    /// All search attributes.
    pub const ALL: [&str; 4] = [CONVERSATION_ID, AGENT_NAME, TENANT_ID, TURN_STATUS];
}
