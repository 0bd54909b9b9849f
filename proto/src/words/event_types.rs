//! The types of persisted events, and the meaning of each type for readers of the log.

words! {
    /// The type of a persisted event. Deltas of a text have no event type, because deltas never reach the database.
    pub enum EventType {
        /// A message of the user, taken into a turn.
        UserMessage = "user_message",
        /// The model's text before a request for tools.
        Thought = "thought",
        /// The model requested a tool.
        Act = "act",
        /// The end of a tool execution. Every `act` gets an `observe`.
        Observe = "observe",
        /// The agent's answer.
        AssistantMessage = "assistant_message",
        /// A plan that the agent made for itself.
        WorkPlan = "work_plan",
        /// A step of a work plan began. A plan step is never an LLM call.
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
        /// A person must approve a tool call before the tool runs.
        ApprovalRequested = "approval_requested",
        /// An approval was answered, or can no longer be answered.
        ApprovalResolved = "approval_resolved",
        /// The client is asked to run a tool.
        ClientToolRequested = "client_tool_requested",
        /// A sub-agent began to work on a task.
        SubAgentStart = "sub_agent_start",
        /// The model no longer gets older messages: a summary replaces the messages.
        ContextCompacted = "context_compacted",
        /// A step gave up a model, and calls the next model of the agent's chain.
        ModelFallback = "model_fallback",
        /// A probe was asked whether a tool call with an unknown outcome has happened.
        OutcomeProbed = "outcome_probed",
        /// A person settled the unknown outcome of a tool call.
        OutcomeSettled = "outcome_settled",
    }
}

impl EventType {
    /// True for the end of an agent execution. Only the end of the turn's root agent execution ends the turn, although
    /// a sub-agent's end has an equal type.
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
            | Self::OutcomeProbed
            | Self::OutcomeSettled
            | Self::Unknown(_) => false,
        }
    }

    /// True for an event with the whole text of a step. The event replaces the streamed deltas of the text.
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
            | Self::OutcomeProbed
            | Self::OutcomeSettled
            | Self::Unknown(_) => false,
        }
    }

    /// True for an event that the end of a tool may have, before its observe: the events of the tool itself, and the
    /// runtime's event about a probe.
    pub fn may_be_in_tool_end(&self) -> bool {
        *self == Self::OutcomeProbed || self.may_be_emitted_by_tools()
    }

    /// True for an event that a tool or a matcher may emit with its result. Every other event type is reserved for the
    /// runtime, because a tool must not be able to forge the record of the turn.
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
            | Self::OutcomeProbed
            | Self::OutcomeSettled
            | Self::Unknown(_) => false,
        }
    }
}
