//! The codes of failures: types of activity failures for the workflow, and the codes of `error` events.

words! {
    /// The code of a failure. Every code has a page in `docs/errors`.
    pub enum FailureCode {
        /// The LLM call took longer than its start-to-close time-out. The workflow itself counts these time-outs.
        LlmTimeout = "llm_timeout",
        /// The provider refused the call because of too many calls.
        LlmRateLimited = "llm_rate_limited",
        /// The provider takes no more calls of the account until the account's owner pays or raises a limit.
        LlmQuotaExceeded = "llm_quota_exceeded",
        /// The provider could not be reached, or answered with a server error.
        LlmUnavailable = "llm_unavailable",
        /// The provider has too many calls from its customers.
        LlmOverloaded = "llm_overloaded",
        /// The reply ended before it was whole.
        LlmStreamCut = "llm_stream_cut",
        /// The provider refused the request as it was.
        LlmBadRequest = "llm_bad_request",
        /// The provider refused the key.
        LlmUnauthorized = "llm_unauthorized",
        /// The conversation no longer fits the model.
        LlmContextTooLong = "llm_context_too_long",
        /// The provider does not know the model.
        LlmNotFound = "llm_not_found",
        /// The provider's content policy forbids the request or its reply.
        LlmContentPolicy = "llm_content_policy",
        /// The reply could not be used.
        LlmInvalidResponse = "llm_invalid_response",
        /// The reply has neither a text nor a tool call.
        LlmEmptyReply = "llm_empty_reply",
        /// The answer does not match the schema of the agent's `output`.
        LlmOutputInvalid = "llm_output_invalid",
        /// The limit of tokens cut the replies again and again in the middle of a tool call.
        LlmReplyCut = "llm_reply_cut",
        /// The tool could not be reached, and did not run.
        ToolUnavailable = "tool_unavailable",
        /// The turn used up the agent's steps without an answer.
        StepLimit = "step_limit",
        /// The turn outlived `turn_timeout`.
        TurnTimeout = "turn_timeout",
        /// The turn, its conversation or its tenant has used up a budget.
        BudgetExhausted = "budget_exhausted",
        /// The sub-agent's workflow was gone when its parent continued.
        SubAgentLost = "sub_agent_lost",
        /// The turn's workflow was gone, and the turn did not continue.
        TurnLost = "turn_lost",
        /// A newer run of the conversation's workflow has taken over.
        RunReplaced = "run_replaced",
        /// The sender asked for a turn at once or not at all, and the turn did not start.
        TurnNotStarted = "turn_not_started",
        /// The store could not be reached.
        StoreUnavailable = "store_unavailable",
        /// The object store that holds images and files could not be reached.
        BlobsUnavailable = "blobs_unavailable",
        /// The store lacks data that the run has saved, because the store went back to an earlier point.
        StoreBehind = "store_behind",
        /// The workflow's input cannot be used.
        InvalidInput = "invalid_input",
        /// No worker has an agent with the name.
        UnknownAgent = "unknown_agent",
        /// The agent does not have the model that the message chose.
        UnknownModel = "unknown_model",
        /// The configuration has lost the provider of the turn's model, and the agent has no other model.
        ModelNotConfigured = "model_not_configured",
        /// The worker does not know the agent, a tool or the provider, but another worker may. Only operators see the
        /// code, as the failure of an attempt that the engine gives to another worker.
        NotHere = "not_here",
        /// The worker of the attempt gives no sign of life. Only operators see the code, as the failure of an attempt
        /// that the engine gives to another worker.
        WorkerLost = "worker_lost",
        /// The message has neither a row nor content.
        UnknownMessage = "unknown_message",
        /// A bug, or stored data that this version cannot read.
        Internal = "internal",
    }
}

impl FailureCode {
    /// True for the failures of models: a model call was refused or gave no usable reply.
    pub fn is_of_a_model(&self) -> bool {
        matches!(
            self,
            Self::LlmTimeout
                | Self::LlmRateLimited
                | Self::LlmQuotaExceeded
                | Self::LlmUnavailable
                | Self::LlmOverloaded
                | Self::LlmStreamCut
                | Self::LlmBadRequest
                | Self::LlmUnauthorized
                | Self::LlmContextTooLong
                | Self::LlmNotFound
                | Self::LlmContentPolicy
                | Self::LlmInvalidResponse
                | Self::LlmEmptyReply
        )
    }

    /// True for an end from outside the agent execution, while the model or a tool was at work.
    pub fn is_from_outside(&self) -> bool {
        matches!(
            self,
            Self::TurnLost | Self::SubAgentLost | Self::TurnTimeout | Self::BudgetExhausted
        )
    }

    /// True for a failure caused by the request, which tells nothing about other calls of the model.
    pub fn is_about_the_request(&self) -> bool {
        matches!(
            self,
            Self::LlmContextTooLong | Self::LlmContentPolicy | Self::LlmBadRequest
        )
    }

    /// True for an unusable reply. The call is repeated once: each call is paid, and after two unusable replies a third
    /// is likely.
    pub fn is_repeated_once(&self) -> bool {
        matches!(self, Self::LlmInvalidResponse | Self::LlmEmptyReply)
    }

    /// True when a repeated model call may succeed later.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::LlmRateLimited
                | Self::LlmUnavailable
                | Self::LlmOverloaded
                | Self::LlmStreamCut
                | Self::LlmInvalidResponse
                | Self::LlmEmptyReply
        )
    }
}
