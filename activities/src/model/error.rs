//! The error of a model call. Its code says what to do about it.

use std::time::Duration;

use everturn_proto::words::failure;

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// One of `failure::LLM_*`.
    pub code: &'static str,
    /// One sentence for the user and the operator; no keys in it.
    pub message: String,
    /// How long the provider asks to wait (429, 503).
    pub retry_after: Option<Duration>,
}

impl ModelError {
    /// An error without a wait.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The model took longer than the agent allows. The workflow counts how often, where no chain of models does.
    pub(crate) fn timeout() -> Self {
        Self::new(
            failure::LLM_TIMEOUT,
            "The model did not finish within `llm_timeout`.",
        )
    }

    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.code,
            failure::LLM_RATE_LIMITED
                | failure::LLM_UNAVAILABLE
                | failure::LLM_OVERLOADED
                | failure::LLM_STREAM_CUT
                | failure::LLM_INVALID_RESPONSE
        )
    }
}
