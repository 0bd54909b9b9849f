//! The words as plain text, until everything uses their types.

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
