//! The lease of this worker process: renewed for as long as it lives, so that gateways find out soon when it is dead.
//!
//! A worker whose lease is over is not stopped. Another one may then do the same again, and the claims keep both from
//! doing harm (invariant 5, paid once; invariant 6, done once; invariant 7, fenced deltas).
//!
//! Must not be here: what becomes of what a dead worker did (the gateway's reconciler).

use std::{process, sync::Arc, time::Duration};

use everturn_store::{WorkerId, WorkerLease, WorkerLeases};
use tokio::{
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

/// So often is a lease renewed in its duration. Three renewals may fail or come late.
const RENEWALS: u32 = 4;

/// The lease, which a task renews until it is ended.
pub(super) struct LeaseKeeper {
    store: Arc<dyn WorkerLeases>,
    lease: WorkerLease,
    renewing: JoinHandle<()>,
}

impl LeaseKeeper {
    /// Begins the lease of this process. When the database does not take it now, it is tried again.
    pub(super) async fn begin(store: Arc<dyn WorkerLeases>, duration: Duration) -> Self {
        let worker = WorkerId::random();
        let host = gethostname::gethostname();
        let process = format!("{}@{}", process::id(), host.to_string_lossy());
        let lease = WorkerLease {
            identity: worker.identity(&process),
            worker,
            duration,
        };
        // Before the first claim, which names the worker.
        if let Err(error) = store.renew_lease(&lease).await {
            tracing::warn!(%error, "this worker has no lease yet; trying again");
        }
        let renewing = keep(Arc::clone(&store), lease.clone());
        Self {
            store,
            lease,
            renewing: tokio::spawn(renewing),
        }
    }

    /// The id of this process.
    pub(super) fn worker(&self) -> &WorkerId {
        &self.lease.worker
    }

    /// What the engine calls this process.
    pub(super) fn identity(&self) -> &str {
        &self.lease.identity
    }

    /// Ends the lease, after the last activity has ended. If that fails, the lease is over by itself in a while.
    pub(super) async fn end(self) {
        self.renewing.abort();
        let ended = self.store.end_lease(&self.lease.worker);
        match timeout(self.lease.duration, ended).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the worker's lease could not be ended"),
            Err(_) => tracing::warn!("the worker's lease could not be ended in time"),
        }
    }
}

/// Renews the lease again and again.
async fn keep(store: Arc<dyn WorkerLeases>, lease: WorkerLease) {
    let mut ticks = interval(lease.duration / RENEWALS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut renewed = Instant::now();
    loop {
        ticks.tick().await;
        match store.renew_lease(&lease).await {
            Ok(()) => {
                let late = renewed.elapsed();
                if late > lease.duration {
                    tracing::warn!(
                        ?late,
                        "this worker renewed its lease too late. If it was taken for dead, what it was doing has begun \
                         again at another one"
                    );
                }
                renewed = Instant::now();
            }
            // A database that is away is reported by those who need it.
            Err(error) => tracing::debug!(%error, "the worker's lease could not be renewed"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use everturn_store::StoreError;

    use super::*;

    /// A store that notes what it is asked.
    #[derive(Default)]
    struct Noting {
        calls: Mutex<Vec<&'static str>>,
    }

    #[async_trait]
    impl WorkerLeases for Noting {
        async fn renew_lease(&self, _: &WorkerLease) -> Result<(), StoreError> {
            self.calls.lock().unwrap().push("renew");
            Ok(())
        }

        async fn end_lease(&self, _: &WorkerId) -> Result<(), StoreError> {
            self.calls.lock().unwrap().push("end");
            Ok(())
        }
    }

    const DURATION: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_renewed_four_times_in_its_duration_until_it_ends() {
        let store = Arc::new(Noting::default());
        let lease = LeaseKeeper::begin(store.clone(), DURATION).await;
        assert!(lease.worker().is_called(lease.identity()));
        tokio::time::sleep(DURATION * 3).await;
        let renewals = store.calls.lock().unwrap().len();
        assert!((12..=15).contains(&renewals), "{renewals}");
        lease.end().await;
        tokio::time::sleep(DURATION).await;
        let calls = store.calls.lock().unwrap().clone();
        assert_eq!(calls.len(), renewals + 1);
        assert_eq!(calls.last(), Some(&"end"));
    }
}
