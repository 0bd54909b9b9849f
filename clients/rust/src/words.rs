//! The words of the API that this client tells apart: text on the wire, a type in code.
//!
//! The enums repeat some of `everturn_proto::words`. This crate does not depend on that one, which brings the SDK of the
//! engine with it; a test of `everturn chat` compares the two.

/// Declares an enum whose variants are words. Each variant has its text; the variant `Unknown` is added and keeps any
/// other text as it came, so a word of a newer gateway is shown and passed on unchanged.
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
            /// A word that this version does not know, as it came.
            Unknown(String),
        }

        impl $name {
            /// The text on the wire.
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
    /// What a message does when a turn is running.
    pub enum OnBusy {
        /// It waits for its own turn.
        Queue = "queue",
        /// It joins the running turn before that turn's next LLM call.
        Steer = "steer",
        /// It cancels the running turn, then has its own.
        Interrupt = "interrupt",
        /// It is accepted only when no turn runs.
        Reject = "reject",
    }
}

words! {
    /// Why a gateway ends a stream for good.
    pub enum EndReason {
        /// The conversation was deleted.
        ConversationDeleted = "conversation_deleted",
        /// The key or token is not valid any more. Another one opens the stream again.
        TokenExpired = "token_expired",
    }
}

words! {
    /// How the approval of a call stands.
    pub enum ApprovalState {
        /// A person is asked.
        Pending = "pending",
        /// The tool may run.
        Approved = "approved",
        /// A person refused.
        Denied = "denied",
        /// Nobody answered in time.
        Expired = "expired",
        /// The turn ended before anybody answered.
        Cancelled = "cancelled",
    }
}

words! {
    /// How a step of a work plan stands.
    pub enum PlanStepStatus {
        /// It has not begun.
        Pending = "pending",
        /// The agent works on it.
        Running = "running",
        /// It is done.
        Completed = "completed",
        /// It could not be done.
        Failed = "failed",
    }
}

impl PlanStepStatus {
    /// Returns true when nothing more is expected of the step. A status that this version does not know may still change.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::Pending | Self::Running | Self::Unknown(_) => false,
        }
    }
}

words! {
    /// Why an answer ended where it does.
    pub enum FinishReason {
        /// The model has answered.
        Stop = "stop",
        /// The provider cut the answer at its limit of tokens.
        Length = "length",
        /// The turn was cancelled while the model spoke: this is the text so far.
        Cancelled = "cancelled",
        /// The answer is not what the agent's `output` asks for.
        InvalidOutput = "invalid_output",
        /// The steps are used up, and the model has summarized its work.
        StepLimit = "step_limit",
    }
}

words! {
    /// The types of events that are shown as notes.
    pub enum NoteEvent {
        /// A summary stands for older messages, or they were left out.
        ContextCompacted = "context_compacted",
        /// A step calls the next model of the chain.
        ModelFallback = "model_fallback",
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
