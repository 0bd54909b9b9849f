//! Words about turns: the statuses of agent executions and conversations, the roles of messages, the reasons for the
//! end of a model call, and the effect of a new message on a running turn.

words! {
    /// The status of an agent execution: a turn, or a sub-agent's part of a turn.
    pub enum AgentExecutionStatus {
        /// The agent execution works, or waits for an approval or a client's tool.
        Running = "running",
        /// The agent execution ended with an answer.
        Completed = "completed",
        /// The agent execution was cancelled.
        Cancelled = "cancelled",
        /// The agent execution ended with an error.
        Failed = "failed",
    }
}

words! {
    /// The status of a conversation in lists.
    pub enum ConversationStatus {
        /// No turn runs, and no message waits.
        Idle = "idle",
        /// A message waits for its turn, and no turn runs.
        Queued = "queued",
        /// A turn runs.
        Running = "running",
        /// A turn runs, and a person must approve a tool call of the turn.
        WaitingForApproval = "waiting_for_approval",
        /// A turn runs, the client must run a tool call of the turn, and no call waits for an approval.
        WaitingForClientTool = "waiting_for_client_tool",
    }
}

words! {
    /// The party that a waiting tool call of a conversation waits for.
    pub enum WaitingFor {
        /// A person, who approves or denies the call.
        Approval = "approval",
        /// A client, which runs the tool.
        ClientTool = "client_tool",
    }
}

words! {
    /// The role of a message in the model's context.
    pub enum MessageRole {
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// No speaker: a summary replaces older messages, which the model no longer gets.
        Summary = "summary",
        /// A person's wish to run a failed turn again. The content is the id of the message that began the turn. Models
        /// never get the message.
        Retry = "retry",
    }
}

words! {
    /// The reason why a model call ended.
    pub enum FinishReason {
        /// The model has answered.
        Stop = "stop",
        /// The model asks for tools.
        ToolCalls = "tool_calls",
        /// The turn was cancelled during the model's reply; the text up to the cancellation is kept.
        Cancelled = "cancelled",
        /// The provider cut the answer at its limit of tokens. Only events have this reason; a checkpoint has the field
        /// `is_cut`.
        Length = "length",
        /// The call made a summary of older messages. The model thinks in the next step.
        Compacted = "compacted",
        /// The answer does not match the schema of the agent's `output`. Only events have this reason.
        InvalidOutput = "invalid_output",
        /// The steps are used up, and the model has summarized its work.
        StepLimit = "step_limit",
    }
}

words! {
    /// The policy for an answer that the provider cut at its token limit.
    pub enum OnCutReply {
        /// The cut answer is the turn's answer, with a note about the cut.
        End = "end",
        /// The model is asked to continue, in another step of the turn.
        Continue = "continue",
    }
}

words! {
    /// The policy for older messages when the model's context window is nearly full.
    pub enum OnFullContext {
        /// A summary by the model replaces the older messages.
        Summarize = "summarize",
        /// The older messages are left out, and the model is told about the omission.
        Drop = "drop",
    }
}

words! {
    /// The effect of a message that arrives while a turn is running.
    pub enum OnBusy {
        /// The message waits for its own turn.
        Queue = "queue",
        /// The message joins the running turn before the next model call of the turn.
        Steer = "steer",
        /// The message cancels the running turn, then gets its own turn.
        Interrupt = "interrupt",
        /// The message is accepted only when no turn runs. A gateway decides about acceptance before any call of a
        /// workflow.
        Reject = "reject",
    }
}

words! {
    /// The type of a checkpoint.
    pub enum CheckpointType {
        /// The model's whole reply in a step.
        LlmComplete = "llm_complete",
        /// A tool is about to run.
        ToolStart = "tool_start",
        /// A tool execution has ended. Its record has the result.
        ToolComplete = "tool_complete",
        /// The text of a stopped LLM call up to the stop. Only the end of a cancelled turn reads the text. An LLM call
        /// also stops when its worker shuts down or its run was reset, and then the activity makes the call again.
        LlmPartial = "llm_partial",
    }
}
