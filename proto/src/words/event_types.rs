//! The types of persisted events, and what each of them means to those who read the log.

words! {
    /// The type of a persisted event. Deltas of a text are not among them: they never reach the database.
    pub enum EventType {
        /// A message of the user, taken into a turn.
        UserMessage = "user_message",
        /// What the model said before it asked for tools.
        Thought = "thought",
        /// A tool was asked for.
        Act = "act",
        /// How a tool ended. There is one for each `act`.
        Observe = "observe",
        /// The agent's answer.
        AssistantMessage = "assistant_message",
        /// A plan that the agent made for itself.
        WorkPlan = "work_plan",
        /// A step of a work plan began. It is never an LLM call.
        PlanStepStart = "step_start",
        /// A step of a work plan ended.
        PlanStepEnd = "step_end",
        /// A tool or a matcher recognised a pattern.
        PatternMatch = "pattern_match",
        /// The model chose a skill.
        SkillMatched = "skill_matched",
        /// A skill's instructions are being handed to the model.
        SkillExecutionStart = "skill_execution_start",
        /// The model has a skill's instructions.
        SkillExecutionComplete = "skill_execution_complete",
        /// An agent execution ended with an answer.
        Complete = "complete",
        /// An agent execution ended without an answer.
        Error = "error",
        /// An agent execution was cancelled.
        Cancelled = "cancelled",
        /// A person must approve a tool call before it runs.
        ApprovalRequested = "approval_requested",
        /// An approval was answered, or can no longer be.
        ApprovalResolved = "approval_resolved",
        /// The client is asked to run a tool.
        ClientToolRequested = "client_tool_requested",
        /// A sub-agent began to work on a task.
        SubAgentStart = "sub_agent_start",
        /// Older messages are no longer sent to the model: a summary stands for them.
        ContextCompacted = "context_compacted",
        /// A step gave a model up, and calls the next one of the agent's chain.
        ModelFallback = "model_fallback",
    }
}

impl EventType {
    /// True for an event that ends its agent execution. Only the end of the turn's own agent execution ends the turn:
    /// a sub-agent's end has the same type.
    pub fn ends_agent_execution(&self) -> bool {
        match self {
            Self::Complete | Self::Error | Self::Cancelled => true,
            Self::UserMessage
            | Self::Thought
            | Self::Act
            | Self::Observe
            | Self::AssistantMessage
            | Self::WorkPlan
            | Self::PlanStepStart
            | Self::PlanStepEnd
            | Self::PatternMatch
            | Self::SkillMatched
            | Self::SkillExecutionStart
            | Self::SkillExecutionComplete
            | Self::ApprovalRequested
            | Self::ApprovalResolved
            | Self::ClientToolRequested
            | Self::SubAgentStart
            | Self::ContextCompacted
            | Self::ModelFallback
            | Self::Unknown(_) => false,
        }
    }

    /// True for an event that holds the whole text of a step, and so replaces what was streamed of that text.
    pub fn holds_text_of_a_step(&self) -> bool {
        match self {
            Self::Thought | Self::AssistantMessage => true,
            Self::UserMessage
            | Self::Act
            | Self::Observe
            | Self::WorkPlan
            | Self::PlanStepStart
            | Self::PlanStepEnd
            | Self::PatternMatch
            | Self::SkillMatched
            | Self::SkillExecutionStart
            | Self::SkillExecutionComplete
            | Self::Complete
            | Self::Error
            | Self::Cancelled
            | Self::ApprovalRequested
            | Self::ApprovalResolved
            | Self::ClientToolRequested
            | Self::SubAgentStart
            | Self::ContextCompacted
            | Self::ModelFallback
            | Self::Unknown(_) => false,
        }
    }

    /// True for an event that a tool or a matcher may emit with its result. Every other event is the runtime's own
    /// account of the turn, which a tool must not be able to forge.
    pub fn may_be_emitted_by_tools(&self) -> bool {
        match self {
            Self::WorkPlan
            | Self::PlanStepStart
            | Self::PlanStepEnd
            | Self::PatternMatch
            | Self::SkillMatched
            | Self::SkillExecutionStart
            | Self::SkillExecutionComplete => true,
            Self::UserMessage
            | Self::Thought
            | Self::Act
            | Self::Observe
            | Self::AssistantMessage
            | Self::Complete
            | Self::Error
            | Self::Cancelled
            | Self::ApprovalRequested
            | Self::ApprovalResolved
            | Self::ClientToolRequested
            | Self::SubAgentStart
            | Self::ContextCompacted
            | Self::ModelFallback
            | Self::Unknown(_) => false,
        }
    }
}
