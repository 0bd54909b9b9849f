//! The codes of failures: types of activity failures that the workflow tells apart, and the codes of `error` events.

/// The codes of failures. Each has a page in `docs/errors`.
pub mod failure {
    /// The LLM call took longer than its start-to-close time-out. The workflow counts these itself.
    pub const LLM_TIMEOUT: &str = "llm_timeout";
    /// The provider refused the call because there were too many.
    pub const LLM_RATE_LIMITED: &str = "llm_rate_limited";
    /// The provider takes no more calls of this account until somebody pays or raises a limit.
    pub const LLM_QUOTA_EXCEEDED: &str = "llm_quota_exceeded";
    /// The provider could not be reached, or answered with a server error.
    pub const LLM_UNAVAILABLE: &str = "llm_unavailable";
    /// The provider has more calls than it can take, of all its customers.
    pub const LLM_OVERLOADED: &str = "llm_overloaded";
    /// The reply ended before it was whole.
    pub const LLM_STREAM_CUT: &str = "llm_stream_cut";
    /// The provider refused the request as it was.
    pub const LLM_BAD_REQUEST: &str = "llm_bad_request";
    /// The provider refused the key.
    pub const LLM_UNAUTHORIZED: &str = "llm_unauthorized";
    /// The conversation no longer fits the model.
    pub const LLM_CONTEXT_TOO_LONG: &str = "llm_context_too_long";
    /// The provider does not know the model.
    pub const LLM_NOT_FOUND: &str = "llm_not_found";
    /// The provider's content policy forbids the request or its reply.
    pub const LLM_CONTENT_POLICY: &str = "llm_content_policy";
    /// The reply could not be used.
    pub const LLM_INVALID_RESPONSE: &str = "llm_invalid_response";
    /// The answer is not what the agent's `output` asks for.
    pub const LLM_OUTPUT_INVALID: &str = "llm_output_invalid";
    /// The tool could not be reached, and did not run.
    pub const TOOL_UNAVAILABLE: &str = "tool_unavailable";
    /// The turn used all of the agent's steps without an answer.
    pub const STEP_LIMIT: &str = "step_limit";
    /// The turn outlived `turn_timeout`.
    pub const TURN_TIMEOUT: &str = "turn_timeout";
    /// The turn, its conversation or its tenant has used up a budget.
    pub const BUDGET_EXHAUSTED: &str = "budget_exhausted";
    /// The sub-agent's workflow was gone when its parent went on.
    pub const SUB_AGENT_LOST: &str = "sub_agent_lost";
    /// The turn's workflow was gone, and the turn did not go on.
    pub const TURN_LOST: &str = "turn_lost";
    /// A newer run of the conversation's workflow has taken over.
    pub const RUN_REPLACED: &str = "run_replaced";
    /// The message was to have its turn at once or not at all, and the turn was not started.
    pub const TURN_NOT_STARTED: &str = "turn_not_started";
    /// The store could not be reached.
    pub const STORE_UNAVAILABLE: &str = "store_unavailable";
    /// The object store that holds images and files could not be reached.
    pub const BLOBS_UNAVAILABLE: &str = "blobs_unavailable";
    /// The store lacks what the run has saved: it went back to an earlier point.
    pub const STORE_BEHIND: &str = "store_behind";
    /// The workflow's input cannot be used.
    pub const INVALID_INPUT: &str = "invalid_input";
    /// No worker has an agent of this name.
    pub const UNKNOWN_AGENT: &str = "unknown_agent";
    /// This worker does not know the agent, a tool or the provider, and another one may. Only operators see it, as the
    /// failure of an attempt that the engine gives to another worker.
    pub const NOT_HERE: &str = "not_here";
    /// The worker that had begun gives no sign of life. Only operators see it, as the failure of an attempt that the
    /// engine gives to another worker.
    pub const WORKER_LOST: &str = "worker_lost";
    /// The message has neither a row nor content.
    pub const UNKNOWN_MESSAGE: &str = "unknown_message";
    /// A bug, or stored data that this version cannot read.
    pub const INTERNAL: &str = "internal";
    /// The codes of failures of models.
    pub const OF_MODELS: [&str; 12] = [
        LLM_TIMEOUT,
        LLM_RATE_LIMITED,
        LLM_QUOTA_EXCEEDED,
        LLM_UNAVAILABLE,
        LLM_OVERLOADED,
        LLM_STREAM_CUT,
        LLM_BAD_REQUEST,
        LLM_UNAUTHORIZED,
        LLM_CONTEXT_TOO_LONG,
        LLM_NOT_FOUND,
        LLM_CONTENT_POLICY,
        LLM_INVALID_RESPONSE,
    ];
    /// All codes.
    pub const ALL: [&str; 30] = [
        LLM_TIMEOUT,
        LLM_RATE_LIMITED,
        LLM_QUOTA_EXCEEDED,
        LLM_UNAVAILABLE,
        LLM_OVERLOADED,
        LLM_STREAM_CUT,
        LLM_BAD_REQUEST,
        LLM_UNAUTHORIZED,
        LLM_CONTEXT_TOO_LONG,
        LLM_NOT_FOUND,
        LLM_CONTENT_POLICY,
        LLM_INVALID_RESPONSE,
        LLM_OUTPUT_INVALID,
        TOOL_UNAVAILABLE,
        STEP_LIMIT,
        TURN_TIMEOUT,
        BUDGET_EXHAUSTED,
        SUB_AGENT_LOST,
        TURN_LOST,
        RUN_REPLACED,
        TURN_NOT_STARTED,
        STORE_UNAVAILABLE,
        BLOBS_UNAVAILABLE,
        STORE_BEHIND,
        INVALID_INPUT,
        UNKNOWN_AGENT,
        NOT_HERE,
        WORKER_LOST,
        UNKNOWN_MESSAGE,
        INTERNAL,
    ];
}
