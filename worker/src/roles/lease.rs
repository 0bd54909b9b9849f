//! The lease of this worker process. The process renews the lease while it lives, so that gateways soon notice a dead
//! worker.
//!
//! A worker with an expired lease is not stopped. Another worker may then repeat its work, and the claims prevent harm
//! (invariant 5, paid once; invariant 6, done once; invariant 7, fenced deltas).
//!
//! Must not be here: how a dead worker's work continues (the gateway's reconciler).

use std::{process, sync::Arc, time::Duration};

use everturn_config::MAX_LEASE;
use everturn_store::{WorkerId, WorkerLease, WorkerLeases};
use tokio::{
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

/// The number of renewals within the lease's duration. Three renewals may fail or come late.
const RENEWALS: u32 = 4;

/// After this time without a late renewal, a prolonged lease gets its configured duration again.
const STEADY: Duration = Duration::from_mins(10);

/// The lease, which a task renews until the end.
pub(super) struct LeaseKeeper {
    store: Arc<dyn WorkerLeases>,
    lease: WorkerLease,
    renewing: JoinHandle<()>,
}

impl LeaseKeeper {
    /// Begins the lease of the process. If the database is away, the task tries again.
    pub(super) async fn begin(store: Arc<dyn WorkerLeases>, duration: Duration) -> Self {
        let worker = WorkerId::random();
        let host = gethostname::gethostname();
        let process = format!("{}@{}", process::id(), host.to_string_lossy());
        let lease = WorkerLease {
            identity: worker.identity(&process),
            worker,
            duration,
        };
        // The lease must exist before the first claim, because a claim names the worker.
        if let Err(error) = store.renew_lease(&lease).await {
            tracing::warn!(%error, "the worker cannot get a lease yet; trying again");
        }
        let renewing = keep(Arc::clone(&store), lease.clone());
        Self {
            store,
            lease,
            renewing: tokio::spawn(renewing),
        }
    }

    /// Returns the worker's id.
    pub(super) fn worker(&self) -> &WorkerId {
        &self.lease.worker
    }

    /// Returns Temporal's name for the process.
    pub(super) fn identity(&self) -> &str {
        &self.lease.identity
    }

    /// Ends the lease after the last activity has ended. If the call fails, the lease expires by itself, and gateways
    /// take this worker for dead.
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

/// The duration of the lease. On a slow machine or database, renewals come late, and a slightly longer stall would
/// make a living worker look dead. Therefore a late renewal doubles the duration. The price is a later detection of a
/// dead worker.
#[derive(Debug)]
struct Patience {
    configured: Duration,
    duration: Duration,
    /// The time of the last late renewal.
    late_at: Instant,
}

impl Patience {
    fn new(configured: Duration) -> Self {
        Self {
            configured,
            duration: configured,
            late_at: Instant::now(),
        }
    }

    /// Records a renewal that came `pause` after the previous one. Returns whether the duration has changed.
    fn renewed(&mut self, pause: Duration) -> bool {
        let before = self.duration;
        if pause > self.duration / 2 {
            self.late_at = Instant::now();
            self.duration = (self.duration * 2).min(MAX_LEASE.max(self.configured));
        } else if self.late_at.elapsed() > STEADY {
            self.duration = self.configured;
        }
        self.duration != before
    }
}

/// Renews the lease forever.
async fn keep(store: Arc<dyn WorkerLeases>, mut lease: WorkerLease) {
    let mut ticks = interval(lease.duration / RENEWALS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut patience, mut renewed) = (Patience::new(lease.duration), Instant::now());
    loop {
        ticks.tick().await;
        // Components with a need for the database report an outage.
        if let Err(error) = store.renew_lease(&lease).await {
            tracing::debug!(%error, "the worker's lease could not be renewed");
            continue;
        }
        let pause = renewed.elapsed();
        if pause > lease.duration {
            tracing::warn!(
                ?pause,
                "the worker renewed its lease too late. If a gateway declared the worker lost, other workers have \
                 begun the running turns and tools again"
            );
        }
        renewed = Instant::now();
        if patience.renewed(pause) {
            lease.duration = patience.duration;
            tracing::warn!(
                ?pause,
                lease = ?lease.duration,
                "the lease of this worker lasts as long from now on, because renewals come late or no longer do"
            );
            ticks.reset_immediately();
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

    /// A store that records every request.
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
    async fn a_lease_lasts_longer_where_renewals_come_late() {
        let mut patience = Patience::new(DURATION);
        assert!(!patience.renewed(DURATION / 4));
        assert!(patience.renewed(DURATION / 2 + Duration::from_millis(1)));
        assert_eq!(patience.duration, DURATION * 2);
        assert!(!patience.renewed(DURATION), "that is half of it now");
        while patience.renewed(MAX_LEASE) {}
        assert_eq!(patience.duration, MAX_LEASE);
        tokio::time::advance(STEADY).await;
        assert!(!patience.renewed(DURATION / 4), "not for long enough");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(patience.renewed(DURATION / 4));
        assert_eq!(patience.duration, DURATION);
    }

    #[tokio::test(start_paused = true)]
    async fn a_longer_lease_is_told_at_once() {
        /// A store in which the second renewal takes some time.
        #[derive(Default)]
        struct Slow {
            told: Mutex<Vec<(Duration, Instant)>>,
        }
        #[async_trait]
        impl WorkerLeases for Slow {
            async fn renew_lease(&self, lease: &WorkerLease) -> Result<(), StoreError> {
                let count = {
                    let mut told = self.told.lock().unwrap();
                    told.push((lease.duration, Instant::now()));
                    told.len()
                };
                if count == 3 {
                    tokio::time::sleep(DURATION * 3 / 4).await;
                }
                Ok(())
            }

            async fn end_lease(&self, _: &WorkerId) -> Result<(), StoreError> {
                Ok(())
            }
        }
        let store = Arc::new(Slow::default());
        let lease = LeaseKeeper::begin(store.clone(), DURATION).await;
        tokio::time::sleep(DURATION * 4).await;
        lease.end().await;
        let told = store.told.lock().unwrap().clone();
        let durations: Vec<_> = told.iter().map(|(duration, _)| *duration).take(4).collect();
        assert_eq!(durations, [DURATION, DURATION, DURATION, DURATION * 2]);
        assert_eq!(
            told[3].1 - told[2].1,
            DURATION * 3 / 4,
            "without another pause"
        );
        assert!(told.len() > 10, "as often as before: {}", told.len());
    }

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
