//! The failure of a tool, which decides about another run.

use std::time::Duration;

use crate::question::Question;

/// A failure of a tool, as a sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// A known failure, which is recorded and never retried.
    #[error("{0}")]
    Failed(String),
    /// The tool had no effect and may work later. A `read` or `idempotent` tool is tried again. For a `once` tool the
    /// error counts as a known failure.
    #[error("{message}")]
    Unavailable {
        /// The description of the failure.
        message: String,
        /// The wait requested by the called system. `None` means the engine's own pause.
        retry_after: Option<Duration>,
    },
    /// The tool was called, but its answer was lost; the effect may have happened. A `read` or `idempotent` tool is
    /// tried again. The outcome of a `once` tool is reported as unknown (invariant 6, done once).
    #[error("{0}")]
    Interrupted(String),
    /// The tool asks a person, and had no effect that another run would repeat. The turn waits for the answer, and runs the
    /// tool again with the answer. Where nobody can be asked, the error counts as a known failure.
    #[error("The tool asks a person, and nobody can be asked here: {}", .0.message)]
    Asks(Box<Question>),
}
