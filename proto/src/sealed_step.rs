//! The steps with sealed texts.

/// A step with a sealed text: saved events hold the whole text now. The events replace the streamed text on every
/// reader, and late deltas of the text are refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SealedStep {
    /// The agent execution that made the step.
    pub agent_execution_id: String,
    /// The number of the step in its agent execution, from 0.
    pub step: u32,
}
