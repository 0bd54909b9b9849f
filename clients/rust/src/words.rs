//! The words of the API that the client distinguishes: text on the wire, a type in code.
//!
//! The enums repeat some of `everturn_proto::words`. The crate does not depend on `everturn_proto`, because
//! `everturn_proto` brings the SDK of the engine. A test of `everturn chat` compares the enums.

/// Declares an enum of words. Every variant has its text. The added variant `Unknown` keeps any other text unchanged,
/// so that a newer gateway's word is shown and passed on.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
            /// A word unknown to this version, unchanged.
            Unknown(String),
        }

        impl $name {
            /// Returns the text on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Unknown(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Unknown(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// The effect of a message while a turn is running.
    pub enum OnBusy {
        /// The message waits for its own turn.
        Queue = "queue",
        /// The message joins the running turn before the turn's next LLM call.
        Steer = "steer",
        /// The message cancels the running turn, then gets its own turn.
        Interrupt = "interrupt",
        /// The message is accepted only when no turn is running.
        Reject = "reject",
    }
}

words! {
    /// Why a gateway ends a stream for good.
    pub enum EndReason {
        /// The conversation was deleted.
        ConversationDeleted = "conversation_deleted",
        /// The key or token is no longer valid. A new key or token opens the stream again.
        TokenExpired = "token_expired",
    }
}

words! {
    /// The state of a call's approval.
    pub enum ApprovalState {
        /// A person is asked.
        Pending = "pending",
        /// The tool may run.
        Approved = "approved",
        /// A person refused.
        Denied = "denied",
        /// A person declined to answer the tool's question, and the tool goes on.
        Declined = "declined",
        /// No answer came in time.
        Expired = "expired",
        /// The turn ended before an answer.
        Cancelled = "cancelled",
    }
}

words! {
    /// The status of a step of a work plan.
    pub enum PlanStepStatus {
        /// The plan step has not begun.
        Pending = "pending",
        /// The agent works on the plan step.
        Running = "running",
        /// The plan step is done.
        Completed = "completed",
        /// The plan step could not be done.
        Failed = "failed",
    }
}

impl PlanStepStatus {
    /// Returns true when the plan step is finished. A status unknown to this version may still change.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::Pending | Self::Running | Self::Unknown(_) => false,
        }
    }
}

words! {
    /// The reason for the end of an answer.
    pub enum FinishReason {
        /// The model has answered.
        Stop = "stop",
        /// The provider cut the answer at its limit of tokens.
        Length = "length",
        /// The turn was cancelled while the model was writing: the answer is the text so far.
        Cancelled = "cancelled",
        /// The answer does not match the agent's `output`.
        InvalidOutput = "invalid_output",
        /// The turn has used up its steps, and the model has summarized its work.
        StepLimit = "step_limit",
    }
}

words! {
    /// The types of events that are shown as notes.
    pub enum NoteEvent {
        /// A summary replaces older messages, or older messages were left out.
        ContextCompacted = "context_compacted",
        /// A step calls the next model of the chain.
        ModelFallback = "model_fallback",
        /// A probe was asked whether a tool call with an unknown outcome has happened.
        OutcomeProbed = "outcome_probed",
        /// A person settled the unknown outcome of a tool call.
        OutcomeSettled = "outcome_settled",
        /// A tool recognised a pattern.
        PatternMatch = "pattern_match",
        /// The model chose a skill.
        SkillMatched = "skill_matched",
        /// A skill's instructions are being handed to the model.
        SkillExecutionStart = "skill_execution_start",
        /// The model has a skill's instructions.
        SkillExecutionComplete = "skill_execution_complete",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_as_it_was() {
        for text in ["pending", "running", "completed", "failed", "paused", ""] {
            let status = PlanStepStatus::from(text);
            assert_eq!(status.as_str(), text);
            assert_eq!(status.to_string(), text);
            let json = serde_json::to_string(&status).unwrap();
            assert_eq!(json, format!("\"{text}\""));
        }
        assert_eq!(PlanStepStatus::from("failed"), PlanStepStatus::Failed);
        let newer = PlanStepStatus::Unknown("paused".to_owned());
        assert_eq!(PlanStepStatus::from("paused"), newer);
        assert_eq!(format!("[{:>8}]", OnBusy::Steer), "[   steer]");
    }
}
