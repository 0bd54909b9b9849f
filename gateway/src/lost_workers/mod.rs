//! Restarts the activities of a dead worker at other workers, seconds before the engine misses the worker's heartbeats.
//!
//! A worker that stopped in order had no work left. But the engine may have given the worker an activity that did not arrive
//! (docs/engine.md, a worker that stops), and no heartbeat comes from the lost activity. So a gateway restarts the
//! activities of stopped workers, too.
//!
//! Every gateway looks at the workers' leases. A worker without a renewal for too long (`signs`) is dead, or stands still,
//! and one gateway takes the lease. The gateway asks the engine for the activities of the worker, beginning with the turns
//! of the worker's last claims (`groups`, `restarts`). The gateway fails these activities, and the engine gives the
//! activities to other workers at once. A living worker that was taken for dead does no harm, because the store fences its
//! claims (invariant 5, paid once; invariant 6, done once; invariant 7, fenced deltas). But its LLM calls are paid again.
//!
//! Must not be here: how leases and claims are stored (`everturn_store::LostWorkers`), how an activity is failed (`turns`).

mod counts;
mod groups;
mod restarts;
mod signs;

use std::{sync::Arc, time::Duration};

use everturn_store::{LostWorkers, SeenLease, StoreError};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub use self::counts::LostWorkerCounts;
use self::{
    groups::{Groups, Lane},
    restarts::Restarts,
    signs::{Signs, is_slow},
};
use crate::turns::ActivityRestarter;

/// The pause between two looks at the leases. A look is one statement, which reads a row for every worker.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The longest pause between two looks. After a longer pause, earlier looks prove nothing, because the database was away or
/// the gateway stood still.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The time for which the engine may give tasks to a dead worker: the worker's polls last for a minute. Until then, a
/// gateway looks at the worker's turns at every end of the lease.
const LINGER: Duration = Duration::from_secs(65);

/// Finds dead workers, and restarts their activities.
pub struct LostWorkerWatch {
    store: Arc<dyn LostWorkers>,
    engine: Arc<dyn ActivityRestarter>,
    counts: Arc<LostWorkerCounts>,
    linger: Duration,
}

impl LostWorkerWatch {
    /// Makes a watch. [`Self::run`] starts the looks.
    pub fn new(store: Arc<dyn LostWorkers>, engine: Arc<dyn ActivityRestarter>) -> Self {
        Self {
            store,
            engine,
            counts: Arc::default(),
            linger: LINGER,
        }
    }

    /// Sets the time for which gateways look at the turns of a dead worker again. Default 65 s.
    #[must_use]
    pub fn lingering(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }

    /// Returns the counters.
    pub fn counts(&self) -> Arc<LostWorkerCounts> {
        Arc::clone(&self.counts)
    }

    /// Begins the looks. The runtime must have timers.
    pub fn looks(self) -> Looks {
        let counts = Arc::clone(&self.counts);
        let restarts = Restarts::new(Arc::clone(&self.store), self.engine, counts, self.linger);
        Looks {
            store: self.store,
            counts: self.counts,
            signs: Signs::default(),
            last_look: Instant::now(),
            groups: Groups::new(restarts),
        }
    }

    /// Looks again and again, until `shutdown` is cancelled. Running restarts then end, and another gateway continues.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut looks = self.looks();
        let mut ticks = interval(LOOK_EVERY);
        // Two looks are never closer together than `LOOK_EVERY`, so a number of looks stands for a time.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_store_away = false;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let looked = tokio::select! {
                () = shutdown.cancelled() => return,
                looked = looks.look() => looked,
            };
            let Err(error) = looked else {
                is_store_away = false;
                continue;
            };
            // An outage logs one message.
            if !std::mem::replace(&mut is_store_away, true) {
                tracing::warn!(%error, "cannot look for dead workers; trying again");
            }
        }
    }
}

/// The looks of a gateway at the leases. The pause between two looks is the caller's.
pub struct Looks {
    store: Arc<dyn LostWorkers>,
    counts: Arc<LostWorkerCounts>,
    signs: Signs,
    /// The end of the last look's call.
    last_look: Instant,
    groups: Groups,
}

impl Looks {
    /// Looks once, and begins to restart the activities of workers that are found dead.
    ///
    /// # Errors
    ///
    /// An error when the store does not answer. Earlier looks then prove nothing.
    pub async fn look(&mut self) -> Result<(), StoreError> {
        let looked = self.look_once().await;
        if looked.is_err() {
            self.signs.forget();
        }
        looked
    }

    async fn look_once(&mut self) -> Result<(), StoreError> {
        if self.last_look.elapsed() > LONGEST_PAUSE {
            self.signs.forget();
        }
        let asked = Instant::now();
        let leases = self.store.leases().await?;
        self.last_look = Instant::now();
        self.counts.add_look();
        let over = self.signs.look(leases, self.last_look - asked, LOOK_EVERY);
        self.groups.tidy();
        for lane in Lane::ALL {
            if self.groups.has_room(lane) {
                let of_lane = over.iter().filter(|lease| Lane::of(lease) == lane);
                let of_lane: Vec<_> = of_lane
                    .filter(|lease| !self.groups.has(&lease.worker))
                    .collect();
                self.take_all(lane, &of_lane).await?;
            }
        }
        Ok(())
    }

    /// Waits until every begun restart has ended.
    pub async fn restarted(&mut self) {
        self.groups.ended().await;
    }

    /// Takes leases, and begins a group of their workers. An error ends the takes, and not the group.
    async fn take_all(&mut self, lane: Lane, over: &[&SeenLease]) -> Result<(), StoreError> {
        let (mut taken, mut failure) = (Vec::new(), None);
        for lease in over {
            match self.take(lease).await {
                Ok(lease) => taken.extend(lease),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        if !taken.is_empty() {
            if lane == Lane::Dead {
                let dead: Vec<_> = taken.iter().map(|lease| &lease.identity).collect();
                tracing::warn!(workers = ?dead, "workers are dead: the workers' activities begin again");
                self.counts.add_workers(dead.len());
            }
            self.groups.begin(lane, taken);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Takes a lease that is over; `None` if the worker lives, or if another gateway was faster.
    ///
    /// Reads may be quick while every write waits: for a lock on the table, for the disk, or for a replica. So the gateway
    /// first makes the worker's own write. If the write is slow, the worker may be waiting for the same write.
    async fn take(&self, lease: &SeenLease) -> Result<Option<SeenLease>, StoreError> {
        if lease.is_ended {
            return self.store.take_lease(lease).await;
        }
        let asked = Instant::now();
        let Some(held) = self.store.hold_lease(lease).await? else {
            return Ok(None);
        };
        let took = asked.elapsed();
        if is_slow(took, lease) {
            let why = format!("the write of a lease took {took:?}, so workers may be alive");
            return Err(StoreError::Unavailable(why.into()));
        }
        self.store.take_lease(&held).await
    }
}
