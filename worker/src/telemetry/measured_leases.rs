//! Wraps the store of worker leases, and counts its errors. Workers renew leases even without turns, so the metric
//! always shows whether a worker reaches the database.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_store::{StoreError, WorkerId, WorkerLease, WorkerLeases};
use everturn_telemetry::turns;

/// A store of leases with counted errors.
pub(super) struct MeasuredLeases {
    store: Arc<dyn WorkerLeases>,
}

impl MeasuredLeases {
    pub(super) fn new(store: Arc<dyn WorkerLeases>) -> Self {
        Self { store }
    }
}

#[async_trait]
impl WorkerLeases for MeasuredLeases {
    async fn renew_lease(&self, lease: &WorkerLease) -> Result<(), StoreError> {
        counted(self.store.renew_lease(lease).await)
    }

    async fn end_lease(&self, worker: &WorkerId) -> Result<(), StoreError> {
        counted(self.store.end_lease(worker).await)
    }
}

/// Counts a failed call of the store.
fn counted<T>(answer: Result<T, StoreError>) -> Result<T, StoreError> {
    if let Err(error) = &answer {
        turns::store_failed(error.is_retryable());
    }
    answer
}
