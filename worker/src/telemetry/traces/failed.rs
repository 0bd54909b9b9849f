//! The status of a failed span.

use opentelemetry::trace::Status;

/// Returns the status of a failure with its reason.
pub(super) fn failed(why: impl Into<String>) -> Status {
    Status::Error {
        description: why.into().into(),
    }
}
