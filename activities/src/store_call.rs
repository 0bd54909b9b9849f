//! One call of the store. The metric `everturn_store_errors_total` counts failed calls here: every call goes through
//! `counted`, `once` or `Attempt::insist`, except calls for blobs, which the metric does not count.
//!
//! Must not be here: the repetition of failed calls (`attempt`).

use std::future::Future;

use everturn_store::StoreError;
use everturn_telemetry::turns;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::failure::{self as fail, Tries};

/// Awaits a call, and counts its failure.
pub(crate) async fn counted<T>(
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = call.await;
    answer.inspect_err(|error| turns::store_failed(error.is_retryable()))
}

/// Awaits a call of an activity that the engine repeats after a failure.
pub(crate) async fn once<T>(
    ctx: &ActivityContext,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, ActivityError> {
    let answer = counted(call).await;
    answer.map_err(|error| fail::from_store(&error, Tries::of(ctx)))
}
