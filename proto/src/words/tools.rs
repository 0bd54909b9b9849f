//! Words about tools: who runs them, what a retry may do, how a tool execution stands.

/// The name of the tool that starts sub-agents.
pub const DELEGATE_TOOL: &str = "delegate";
/// The name of the tool that reads the rest of a result that was cut.
pub const READ_RESULT_TOOL: &str = "read_result";

words! {
    /// What a tool does to the world, and so what a retry of it may do.
    pub enum Effect {
        /// It only reads.
        Read = "read",
        /// Running it again with the same input changes nothing more.
        Idempotent = "idempotent",
        /// It must not run twice.
        Once = "once",
    }
}

impl Effect {
    /// The effects of tools that may run again when nobody knows whether an attempt took effect. The SQL that claims a
    /// tool takes its list from here.
    pub const REPEATABLE: [Self; 2] = [Self::Read, Self::Idempotent];

    /// True when a tool with this effect may run again although an earlier attempt may have taken effect (invariant
    /// 6, done once). An effect that this version does not know is treated as `once`.
    pub fn may_run_again(&self) -> bool {
        Self::REPEATABLE.contains(self)
    }
}

words! {
    /// Who runs a tool. The word for a worker's own tool is the empty text, because it was the only kind at first.
    pub enum ToolKind {
        /// A worker, as an activity.
        Worker = "",
        /// The client: it posts the result.
        Client = "client",
        /// A sub-agent, as a child workflow.
        Delegate = "delegate",
        /// A worker of the operator's own, in any Temporal SDK's language.
        Remote = "remote",
    }
}

words! {
    /// When a tool runs that an agent has as a hook.
    pub enum Hook {
        /// It runs before the turn's first LLM call. What it gives stands in the context of the turn.
        BeforeTurn = "before_turn",
        /// It runs after the turn has completed.
        AfterTurn = "after_turn",
    }
}

words! {
    /// How a tool execution stands.
    pub enum ToolStatus {
        /// It was asked for and has not started.
        Pending = "pending",
        /// An attempt has claimed it.
        Running = "running",
        /// It ended with a result.
        Completed = "completed",
        /// It ended with an error.
        Failed = "failed",
        /// It was cancelled with its turn.
        Cancelled = "cancelled",
        /// It may or may not have had its effect: a `once` tool whose attempt left nothing.
        OutcomeUnknown = "unknown",
    }
}

impl ToolStatus {
    /// The statuses of a tool execution whose end is not recorded. The SQL that ends a tool takes its list from here.
    pub const OPEN: [Self; 2] = [Self::Pending, Self::Running];

    /// True when nothing more will be recorded for the tool execution. A status that this version does not know is a
    /// newer version's end: it is not written over.
    pub fn is_final(&self) -> bool {
        !Self::OPEN.contains(self)
    }
}

/// Failure types with which a remote tool's activity leaves open how its tool ended. Any other type says that it
/// failed.
pub mod remote_failure {
    /// The tool itself reports that it does not know whether it has had its effect.
    pub const OUTCOME_UNKNOWN: &str = "OutcomeUnknown";
    /// The worker shut down and stopped the activity: SDKs report this type.
    pub const WORKER_SHUTDOWN: &str = "WorkerShutdown";
}
