//! The limits of a reply's size (invariant 10, nothing grows without a bound).

use everturn_proto::{limits::MAX_TEXT_BYTES, words::FailureCode};

use crate::error::ModelError;

/// Fails when a text, or the arguments of a call, are longer than the store's limit.
pub(super) fn check_size(what: &str, bytes: usize) -> Result<(), ModelError> {
    if bytes <= MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(invalid(&format!(
        "The model's {what} went on past {MAX_TEXT_BYTES} bytes and was stopped."
    )))
}

/// Returns the error for an unusable reply.
pub(super) fn invalid(message: &str) -> ModelError {
    ModelError::new(FailureCode::LlmInvalidResponse, message)
}
