//! Counts failed calls of the store.

use everturn_store::StoreError;
use everturn_telemetry::turns;

/// Counts a failed call of the store.
pub(super) fn noted<T>(answer: Result<T, StoreError>) -> Result<T, StoreError> {
    if let Err(error) = &answer {
        turns::store_failed(error.is_retryable());
    }
    answer
}
