//! The error of a model call. The error's code names the remedy.

use std::time::Duration;

use everturn_proto::words::FailureCode;

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind of the failure: one of the models' codes.
    pub code: FailureCode,
    /// One sentence for the user and the operator, without keys.
    pub message: String,
    /// The time that the provider asks to wait (429, 503).
    pub retry_after: Option<Duration>,
    /// True when the provider refused the call before any work, or never got the call: nothing is billed, unless the
    /// provider has sent a part of a reply before.
    pub is_refused: bool,
}

impl ModelError {
    /// An error without a wait. The code tells whether the provider refused the call.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            is_refused: is_refusal(&code),
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Marks the error of a call that the provider refused, or never got, although the code alone does not say so.
    #[must_use]
    pub(crate) fn refused(self) -> Self {
        Self {
            is_refused: true,
            ..self
        }
    }

    /// Marks the error of a call that the provider has accepted before.
    #[must_use]
    pub(crate) fn accepted(self) -> Self {
        Self {
            is_refused: false,
            ..self
        }
    }

    /// Makes the error of a call that exceeded the agent's limit for the whole call. The workflow counts the time-outs,
    /// except in a chain of models.
    pub fn out_of_time(limit: Duration) -> Self {
        Self::new(
            FailureCode::LlmTimeout,
            format!("The model did not finish within `llm_total_timeout` ({limit:?})."),
        )
    }

    /// Makes the error of a model that was silent for longer than the agent's limit. The workflow counts the time-outs
    /// like those of [`ModelError::out_of_time`].
    pub fn silent(limit: Duration) -> Self {
        Self::new(
            FailureCode::LlmTimeout,
            format!("The model was silent for longer than `llm_timeout` ({limit:?})."),
        )
    }

    /// True when an identical call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.code.may_pass()
    }
}

/// True for the codes that a provider gives before any work.
fn is_refusal(code: &FailureCode) -> bool {
    matches!(
        code,
        FailureCode::LlmRateLimited
            | FailureCode::LlmOverloaded
            | FailureCode::LlmQuotaExceeded
            | FailureCode::LlmBadRequest
            | FailureCode::LlmUnauthorized
            | FailureCode::LlmContextTooLong
            | FailureCode::LlmNotFound
    )
}
