//! The limits of a reply's size (invariant 10, nothing grows without a bound).

use everturn_proto::{
    limits::{MAX_TEXT_BYTES, MAX_TOOL_CALLS},
    words::FailureCode,
};

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

/// Fails when a reply has more calls than a step may have.
pub(super) fn check_calls(calls: usize) -> Result<(), ModelError> {
    if calls <= MAX_TOOL_CALLS {
        return Ok(());
    }
    Err(invalid(&format!(
        "The model asked for more than {MAX_TOOL_CALLS} tools at once."
    )))
}

/// Returns the error for an unusable reply.
pub(super) fn invalid(message: &str) -> ModelError {
    ModelError::new(FailureCode::LlmInvalidResponse, message)
}
