//! Steps whose texts are sealed.

/// A step whose text is sealed: saved events hold the whole text now. They replace what was streamed of it on every
/// reader, and late pieces of it are refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SealedStep {
    /// The agent execution that made the step.
    pub agent_execution_id: String,
    /// The number of the step in its agent execution, from 0.
    pub step: u32,
}
