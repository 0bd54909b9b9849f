//! Words about turns: how an agent execution stands, who said a message, why a model call ended, what a message does to
//! a running turn.

words! {
    /// How an agent execution stands: a turn, or a sub-agent's part of one.
    pub enum AgentExecutionStatus {
        /// It is at work, or waits for somebody.
        Running = "running",
        /// It ended with an answer.
        Completed = "completed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It ended with an error.
        Failed = "failed",
    }
}

words! {
    /// How a conversation stands, as lists say it in one word.
    pub enum ConversationStatus {
        /// Nothing runs, and no message waits.
        Idle = "idle",
        /// A message waits for its turn, and no turn runs.
        Queued = "queued",
        /// A turn runs.
        Running = "running",
        /// A turn runs, and a person must approve a call of it.
        WaitingForApproval = "waiting_for_approval",
        /// A turn runs, the client is to run a call of it, and no call waits for an approval.
        WaitingForClientTool = "waiting_for_client_tool",
    }
}

words! {
    /// Who said a message of the model's context.
    pub enum MessageRole {
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// Nobody: it stands for older messages, which are no longer sent.
        Summary = "summary",
    }
}

words! {
    /// Why a call of the model ended.
    pub enum FinishReason {
        /// The model has answered.
        Stop = "stop",
        /// The model asks for tools.
        ToolCalls = "tool_calls",
        /// The turn was cancelled while the model spoke; the text so far is kept.
        Cancelled = "cancelled",
        /// The provider cut the answer at its limit of tokens. Only events say so; a checkpoint keeps it apart, so that
        /// workers of the release before can read it.
        Length = "length",
        /// The call has made a summary of older messages. The model thinks in the next step.
        Compacted = "compacted",
        /// The answer is not what the agent's `output` asks for. Only events say so.
        InvalidOutput = "invalid_output",
        /// The steps are used up, and the model has summarized its work.
        StepLimit = "step_limit",
    }
}

words! {
    /// What becomes of an answer that the provider cut at its limit of tokens.
    pub enum OnCutReply {
        /// It is the turn's answer, and says that it was cut.
        End = "end",
        /// The model is asked to go on, in another step of the turn.
        Continue = "continue",
    }
}

words! {
    /// What becomes of older messages when the model's context window nears its end.
    pub enum OnFullContext {
        /// A summary stands for them, which the model itself writes.
        Summarize = "summarize",
        /// They are left out, and the model is told so.
        Drop = "drop",
    }
}

words! {
    /// What a message does when a turn is running.
    pub enum OnBusy {
        /// It waits for its own turn.
        Queue = "queue",
        /// It joins the running turn before that turn's next call of the model.
        Steer = "steer",
        /// It cancels the running turn, then has its own.
        Interrupt = "interrupt",
        /// It is accepted only when no turn runs. A gateway decides this, before it tells a workflow.
        Reject = "reject",
    }
}

words! {
    /// The type of a checkpoint.
    pub enum CheckpointType {
        /// The model's whole reply of a step.
        LlmComplete = "llm_complete",
        /// A tool is about to run.
        ToolStart = "tool_start",
        /// The text so far of an LLM call that was stopped. Only the end of a cancelled turn reads it: an activity is
        /// also stopped when its worker shuts down or its run was reset, and then the call is simply made again.
        LlmPartial = "llm_partial",
    }
}
