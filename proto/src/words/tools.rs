//! Words about tools: the kinds of tools, the effects that decide about retries, and the statuses of a tool execution.

/// The name of the tool that starts sub-agents.
pub const DELEGATE_TOOL: &str = "delegate";
/// The name of the tool that reads the rest of a cut result.
pub const READ_RESULT_TOOL: &str = "read_result";
/// The name of the tool that finds the agent's tools for which a request has no room.
pub const FIND_TOOLS_TOOL: &str = "find_tools";

words! {
    /// The tool's effect on the world, which decides what a retry of the tool may do.
    pub enum Effect {
        /// The tool only reads.
        Read = "read",
        /// A second run with an equal input changes nothing more.
        Idempotent = "idempotent",
        /// The tool must not run twice.
        Once = "once",
    }
}

impl Effect {
    /// The effects of tools that may run again when no record tells the outcome of an attempt. The SQL for the
    /// claim of a tool uses this list.
    pub const REPEATABLE: [Self; 2] = [Self::Read, Self::Idempotent];

    /// True when a tool with this effect may run again although an earlier attempt may have changed the world (invariant
    /// 6, done once). An effect unknown to this version counts as `once`.
    pub fn may_run_again(&self) -> bool {
        Self::REPEATABLE.contains(self)
    }
}

words! {
    /// The kind of process that runs a tool. The word for a worker's own tool is the empty text, because workers' tools
    /// were the only kind at first.
    pub enum ToolKind {
        /// A worker runs the tool, as an activity.
        Worker = "",
        /// The client runs the tool and posts the result.
        Client = "client",
        /// A sub-agent does the work, as a child workflow.
        Delegate = "delegate",
        /// A worker of the operator runs the tool, in the language of any Temporal SDK.
        Remote = "remote",
    }
}

words! {
    /// The time at which an agent's hook runs.
    pub enum Hook {
        /// The hook runs before the turn's first LLM call. The hook's result is part of the turn's context.
        BeforeTurn = "before_turn",
        /// The hook runs after the turn has completed.
        AfterTurn = "after_turn",
    }
}

words! {
    /// The status of a tool execution.
    pub enum ToolStatus {
        /// The tool was requested and has not started.
        Pending = "pending",
        /// An attempt has claimed the tool execution.
        Running = "running",
        /// The tool execution ended with a result.
        Completed = "completed",
        /// The tool execution ended with an error.
        Failed = "failed",
        /// The tool execution was cancelled with its turn.
        Cancelled = "cancelled",
        /// The tool may or may not have taken effect: an attempt of a `once` tool left no record of its end.
        OutcomeUnknown = "unknown",
    }
}

words! {
    /// Whether a tool call had its effect, as a probe or a person says.
    pub enum ToolOutcome {
        /// The call had its effect.
        Happened = "happened",
        /// The call had no effect, and will have none.
        NotHappened = "not_happened",
        /// Nobody can tell.
        StillUnknown = "unknown",
    }
}

impl ToolStatus {
    /// The statuses of a tool execution without a recorded end. The SQL for the end of a tool uses this list.
    pub const OPEN: [Self; 2] = [Self::Pending, Self::Running];

    /// True when the tool execution gets no further record. A status unknown to this version is a newer version's end,
    /// and must not be overwritten.
    pub fn is_final(&self) -> bool {
        !Self::OPEN.contains(self)
    }
}

/// Failure types of a remote tool's activity that leave the tool's end unknown. With any other failure type, the tool
/// has failed.
pub mod remote_failure {
    /// The tool reports an unknown outcome.
    pub const OUTCOME_UNKNOWN: &str = "OutcomeUnknown";
    /// The worker shut down and stopped the activity: SDKs report this type.
    pub const WORKER_SHUTDOWN: &str = "WorkerShutdown";
}
