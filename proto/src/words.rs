//! The strings that travel: event types, statuses, names of signals, queries and search attributes.
//!
//! They are strings and not enums on the wire so that an old reader survives a new value.

/// Default task queue of workers.
pub const TASK_QUEUE: &str = "everturn";
/// Tenant of a conversation when none is given.
pub const DEFAULT_TENANT: &str = "default";
/// Agent of a conversation when none is given.
pub const DEFAULT_AGENT: &str = "default";

/// Types of persisted events (B6). Deltas are not among them: they never reach the database.
pub mod event_type {
    #![allow(missing_docs)]
    pub const USER_MESSAGE: &str = "user_message";
    pub const THOUGHT: &str = "thought";
    pub const ACT: &str = "act";
    pub const OBSERVE: &str = "observe";
    pub const ASSISTANT_MESSAGE: &str = "assistant_message";
    pub const WORK_PLAN: &str = "work_plan";
    pub const STEP_START: &str = "step_start";
    pub const STEP_END: &str = "step_end";
    pub const SKILL_MATCHED: &str = "skill_matched";
    pub const SKILL_EXECUTION_START: &str = "skill_execution_start";
    pub const SKILL_EXECUTION_COMPLETE: &str = "skill_execution_complete";
    pub const COMPLETE: &str = "complete";
    pub const ERROR: &str = "error";
    pub const CANCELLED: &str = "cancelled";
    pub const APPROVAL_REQUESTED: &str = "approval_requested";
    pub const APPROVAL_RESOLVED: &str = "approval_resolved";
    pub const CLIENT_TOOL_REQUESTED: &str = "client_tool_requested";
    pub const SUB_AGENT_START: &str = "sub_agent_start";

    /// True for an event that ends its agent execution: a turn, or a sub-agent's part of one.
    pub fn ends_turn(event_type: &str) -> bool {
        matches!(event_type, COMPLETE | ERROR | CANCELLED)
    }
}

/// Status of an agent execution (one turn, or one sub-agent's part of it).
pub mod execution_status {
    #![allow(missing_docs)]
    pub const RUNNING: &str = "running";
    pub const COMPLETED: &str = "completed";
    pub const CANCELLED: &str = "cancelled";
    pub const FAILED: &str = "failed";
}

/// Status of a tool execution record (C2, D2, invariant 6).
pub mod tool_status {
    #![allow(missing_docs)]
    pub const PENDING: &str = "pending";
    pub const RUNNING: &str = "running";
    pub const COMPLETED: &str = "completed";
    pub const FAILED: &str = "failed";
    pub const CANCELLED: &str = "cancelled";
    /// It may or may not have had its effect: a `once` tool whose attempt left nothing.
    pub const UNKNOWN: &str = "unknown";

    /// True when nothing more will be recorded for the tool execution.
    pub fn is_final(status: &str) -> bool {
        !matches!(status, PENDING | RUNNING)
    }
}

/// Who runs a tool.
pub mod tool_kind {
    #![allow(missing_docs)]
    /// A worker, as an activity.
    pub const WORKER: &str = "";
    /// The client: it posts the result.
    pub const CLIENT: &str = "client";
    /// A sub-agent, as a child workflow.
    pub const DELEGATE: &str = "delegate";
    /// A worker of the operator's own, in any Temporal SDK's language.
    pub const REMOTE: &str = "remote";
}

/// Failure types of a remote tool's activity that do not say how it ended. Any other one does.
pub mod remote_failure {
    /// The tool says so: it was asked, and does not know whether it had its effect.
    pub const OUTCOME_UNKNOWN: &str = "OutcomeUnknown";
    /// SDKs say so for an activity that was stopped because its worker shut down.
    pub const WORKER_SHUTDOWN: &str = "WorkerShutdown";
}

/// Name of the tool that starts sub-agents.
pub const DELEGATE_TOOL: &str = "delegate";

/// How the approval of a tool execution stands.
pub mod approval {
    #![allow(missing_docs)]
    pub const NOT_NEEDED: &str = "";
    pub const PENDING: &str = "pending";
    pub const APPROVED: &str = "approved";
    pub const DENIED: &str = "denied";
    pub const EXPIRED: &str = "expired";
    /// Its turn ended first.
    pub const CANCELLED: &str = "cancelled";
    /// Decisions of `resolve_approval`.
    pub const APPROVE: &str = "approve";
    pub const DENY: &str = "deny";
}

/// Why a turn refuses an answer to an approval: the first word of what update `resolve_approval` is refused with.
pub mod refusal {
    #![allow(missing_docs)]
    /// No such call waits now.
    pub const UNKNOWN: &str = "approval_unknown";
    pub const ANSWERED: &str = "approval_answered";
    /// It is for another input than the call's.
    pub const MISMATCH: &str = "approval_mismatch";
    /// The answer itself is wrong.
    pub const INVALID: &str = "approval_invalid";
}

/// What a retry of a tool may do (invariant 6).
pub mod effect {
    #![allow(missing_docs)]
    pub const READ: &str = "read";
    pub const IDEMPOTENT: &str = "idempotent";
    pub const ONCE: &str = "once";
}

/// Why an LLM call ended.
pub mod finish {
    #![allow(missing_docs)]
    pub const STOP: &str = "stop";
    pub const TOOL_CALLS: &str = "tool_calls";
    /// The turn was cancelled while the model spoke; the text so far is kept.
    pub const CANCELLED: &str = "cancelled";
}

/// What a message does when a turn is running.
pub mod on_busy {
    #![allow(missing_docs)]
    pub const QUEUE: &str = "queue";
    pub const STEER: &str = "steer";
    pub const INTERRUPT: &str = "interrupt";
}

/// Types of checkpoints (A3).
pub mod checkpoint {
    #![allow(missing_docs)]
    pub const LLM_COMPLETE: &str = "llm_complete";
    pub const TOOL_START: &str = "tool_start";
    /// The text so far of an LLM call that was stopped. Only a cancelled end reads it: an activity is also
    /// stopped when its worker shuts down or its run was reset, and then the call is simply made again.
    pub const LLM_PARTIAL: &str = "llm_partial";
}

/// Keyword search attributes of every turn (A7); registered by `everturn migrate` and at worker start-up.
pub mod search_attribute {
    #![allow(missing_docs)]
    pub const CONVERSATION_ID: &str = "ConversationId";
    pub const AGENT_NAME: &str = "AgentName";
    pub const TENANT_ID: &str = "TenantId";
    /// Set at the start and when a turn waits for a person: each change is a history event.
    pub const TURN_STATUS: &str = "TurnStatus";
    pub const ALL: [&str; 4] = [CONVERSATION_ID, AGENT_NAME, TENANT_ID, TURN_STATUS];
}

/// Types of activity failures the workflow tells apart; also the codes of `error` events.
pub mod failure {
    #![allow(missing_docs)]
    /// The LLM call outlived its start-to-close time-out; the workflow counts these itself.
    pub const LLM_TIMEOUT: &str = "llm_timeout";
    pub const LLM_RATE_LIMITED: &str = "llm_rate_limited";
    pub const LLM_UNAVAILABLE: &str = "llm_unavailable";
    pub const LLM_STREAM_CUT: &str = "llm_stream_cut";
    pub const LLM_BAD_REQUEST: &str = "llm_bad_request";
    pub const LLM_UNAUTHORIZED: &str = "llm_unauthorized";
    pub const LLM_CONTEXT_TOO_LONG: &str = "llm_context_too_long";
    pub const LLM_NOT_FOUND: &str = "llm_not_found";
    pub const LLM_INVALID_RESPONSE: &str = "llm_invalid_response";
    pub const TOOL_UNAVAILABLE: &str = "tool_unavailable";
    pub const STEP_LIMIT: &str = "step_limit";
    /// The turn outlived `turn_timeout`.
    pub const TURN_TIMEOUT: &str = "turn_timeout";
    /// The sub-agent's workflow was gone when its parent went on.
    pub const SUB_AGENT_LOST: &str = "sub_agent_lost";
    /// The turn's workflow was gone when a newer message began its turn.
    pub const TURN_LOST: &str = "turn_lost";
    pub const STORE_UNAVAILABLE: &str = "store_unavailable";
    pub const INVALID_INPUT: &str = "invalid_input";
    pub const UNKNOWN_AGENT: &str = "unknown_agent";
    pub const UNKNOWN_MESSAGE: &str = "unknown_message";
    pub const INTERNAL: &str = "internal";
}
