//! The error of a model call. Its code says what to do about it.

use std::time::Duration;

use everturn_proto::words::FailureCode;

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What went wrong: one of the codes of models.
    pub code: FailureCode,
    /// One sentence for the user and the operator; no keys in it.
    pub message: String,
    /// How long the provider asks to wait (429, 503).
    pub retry_after: Option<Duration>,
}

impl ModelError {
    /// An error without a wait.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The model took longer than the agent allows. The workflow counts how often, where no chain of models does.
    pub(crate) fn timeout() -> Self {
        Self::new(
            FailureCode::LlmTimeout,
            "The model did not finish within `llm_timeout`.",
        )
    }

    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.code.may_pass()
    }
}
