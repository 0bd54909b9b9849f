//! Restarts the activities of a dead worker at other workers, seconds before the engine misses the worker's heartbeats.
//!
//! A worker that stopped in order had no work left. But the engine may have given the worker an activity that did not arrive
//! (docs/engine.md, a worker that stops), and no heartbeat comes from the lost activity. So a gateway restarts the
//! activities of stopped workers, too.
//!
//! Every gateway looks at the workers' leases. A worker without a renewal for too long (`signs`) is dead, or stands still,
//! and one gateway takes the lease. The gateway asks the engine for the activities of the worker, beginning with the turns
//! of the worker's last claims. The gateway fails these activities, and the engine gives the activities to other workers at
//! once. A living worker that was taken for dead does no harm, because the store fences its claims (invariant 5, paid once;
//! invariant 6, done once; invariant 7, fenced deltas).
//!
//! Must not be here: how leases and claims are stored (`everturn_store::LostWorkers`), how an activity is failed (`turns`).

mod signs;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use everturn_store::{LostWorkers, RunningAgentExecution, SeenLease, StoreError, WorkerId};
use futures::{StreamExt, stream};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use self::signs::Signs;
use crate::turns::{ActivityRestarter, TurnError};

/// The pause between two looks at the leases. A look is one statement, which reads a row for every worker.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The longest pause between two looks. After a longer pause, earlier looks prove nothing, because the database was away or
/// the gateway stood still.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The most agent executions that a gateway looks at for a dead worker: those with a claim of the worker, and others that
/// the worker may have just begun. Missed heartbeats find the rest.
const MAX_AGENT_EXECUTIONS: u32 = 1000;
/// The most agent executions that a gateway looks at in a later look.
const MAX_AGENT_EXECUTIONS_AGAIN: u32 = 100;
/// The time for which the engine may give tasks to a dead worker: the worker's polls last for a minute. Until then, a
/// gateway looks at the worker's turns at every end of the lease.
const LINGER: Duration = Duration::from_secs(65);
/// How often gateways take the lease of a stopped worker. The worker has no polls any more. The second look finds activities
/// that the engine was giving the worker during the first look.
const TAKES_OF_ENDED: u32 = 2;
/// The rounds of restarts in a look. The engine may give a restarted activity to the dead worker again, at most once for
/// each of the worker's five polls.
const ROUNDS: u32 = 7;
/// The pause between two rounds, within which the engine gives a restarted activity to a worker.
const ROUND_PAUSE: Duration = Duration::from_millis(100);
/// The agent executions that a gateway looks at in a second. The engine gets a call for every agent execution, and two or
/// three calls where the worker had an activity. A small engine spends some percent of its capacity, and 200 activities of a
/// dead worker begin again within a second.
const EXECUTIONS_A_SECOND: u32 = 200;
/// The agent executions that a gateway looks at in parallel, so that calls do not pile up at a slow engine. When every call
/// of a group fails, the engine counts as away.
const AT_ONCE: usize = 8;
/// The number of agent executions after which the gateway takes the lease again, so that no other gateway takes the lease.
const EXECUTIONS_A_TAKE: usize = 100;

/// Finds dead workers, and restarts their activities.
pub struct LostWorkerWatch {
    store: Arc<dyn LostWorkers>,
    engine: Arc<dyn ActivityRestarter>,
    counts: Arc<LostWorkerCounts>,
    linger: Duration,
}

/// Counters for metrics, from the start of the process.
#[derive(Debug, Default)]
pub struct LostWorkerCounts {
    looks: AtomicU64,
    workers: AtomicU64,
    activities: AtomicU64,
}

impl LostWorkerCounts {
    /// Returns the number of looks at the leases.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Returns the number of dead workers whose lease this gateway took.
    pub fn workers(&self) -> u64 {
        self.workers.load(Ordering::Relaxed)
    }

    /// Returns the number of restarted activities of dead and stopped workers.
    pub fn activities(&self) -> u64 {
        self.activities.load(Ordering::Relaxed)
    }
}

/// Why a look ended early. A later look, by any gateway, does the rest.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] TurnError),
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

    /// Looks again and again, until `shutdown` is cancelled.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut ticks = interval(LOOK_EVERY);
        // Two looks are never closer together than `LOOK_EVERY`, so a number of looks stands for a time.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut signs, mut last_look) = (Signs::default(), Instant::now());
        let (mut is_store_away, mut is_engine_away) = (false, false);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            if last_look.elapsed() > LONGEST_PAUSE {
                signs.forget();
            }
            let looked = tokio::select! {
                () = shutdown.cancelled() => return,
                looked = self.look(&mut signs, &mut last_look) => looked,
            };
            match looked {
                Ok(has_asked_engine) => {
                    is_store_away = false;
                    is_engine_away &= !has_asked_engine;
                }
                Err(error) => {
                    let is_away = match error {
                        LookError::Store(_) => &mut is_store_away,
                        LookError::Engine(_) => &mut is_engine_away,
                    };
                    // An outage logs one message.
                    if !std::mem::replace(is_away, true) {
                        tracing::warn!(%error, "cannot restart the activities of dead workers; trying again");
                    }
                }
            }
        }
    }

    /// Looks once, and restarts the activities of dead workers. Returns true after a call to the engine.
    async fn look(&self, signs: &mut Signs, last_look: &mut Instant) -> Result<bool, LookError> {
        let leases = self.store.leases().await.inspect_err(|_| signs.forget())?;
        *last_look = Instant::now();
        self.counts.looks.fetch_add(1, Ordering::Relaxed);
        let mut taken = Vec::new();
        for lease in signs.look(leases, LOOK_EVERY) {
            taken.extend(self.store.take_lease(&lease).await?);
        }
        if taken.is_empty() {
            return Ok(false);
        }
        let found: Vec<_> = taken.iter().filter(|lease| lease.takes == 1).collect();
        let limit = if found.is_empty() {
            MAX_AGENT_EXECUTIONS_AGAIN
        } else {
            MAX_AGENT_EXECUTIONS
        };
        let dead = found.into_iter().filter(|lease| !lease.is_ended);
        let dead: Vec<_> = dead.map(|lease| &lease.identity).collect();
        if !dead.is_empty() {
            tracing::warn!(workers = ?dead, "workers are dead: the workers' activities begin again");
            self.counts
                .workers
                .fetch_add(dead.len() as u64, Ordering::Relaxed);
        }
        let restarted = self.see_to(taken, limit).await?;
        if restarted > 0 {
            tracing::info!(
                restarted,
                "activities of dead or stopped workers begin again"
            );
        }
        Ok(true)
    }

    /// Restarts the activities of these workers, and removes their leases after a while. Returns the number of activities.
    async fn see_to(&self, mut taken: Vec<SeenLease>, limit: u32) -> Result<u64, LookError> {
        let lost = workers(&taken);
        let executions = self.store.running_agent_executions(&lost, limit).await?;
        let mut restarted = 0;
        for (number, part) in executions.chunks(EXECUTIONS_A_TAKE).enumerate() {
            if number > 0 {
                taken = self.take_again(taken).await?;
            }
            restarted += self.restart(part, &workers(&taken)).await?;
        }
        for lease in taken {
            let is_done = if lease.is_ended {
                lease.takes >= TAKES_OF_ENDED
            } else {
                lease.duration * lease.takes >= self.linger
            };
            if is_done {
                self.store.remove_lease(&lease).await?;
            }
        }
        Ok(restarted)
    }

    /// Takes the leases again, and leaves out workers with a renewed lease.
    async fn take_again(&self, taken: Vec<SeenLease>) -> Result<Vec<SeenLease>, LookError> {
        let mut again = Vec::with_capacity(taken.len());
        for lease in taken {
            again.extend(self.store.take_lease(&lease).await?);
        }
        Ok(again)
    }

    /// Restarts the activities of these workers in these turns until living workers have the activities. Returns the number
    /// of restarts.
    async fn restart(
        &self,
        executions: &[RunningAgentExecution],
        workers: &[WorkerId],
    ) -> Result<u64, LookError> {
        let mut left: Vec<_> = executions.iter().collect();
        let mut restarted = 0;
        for round in 0..ROUNDS {
            if left.is_empty() || workers.is_empty() {
                break;
            }
            if round > 0 {
                tokio::time::sleep(ROUND_PAUSE).await;
            }
            let theirs = self.restart_once(&left, workers).await?;
            restarted += theirs
                .iter()
                .map(|(_, count)| u64::from(*count))
                .sum::<u64>();
            left = theirs.into_iter().map(|(execution, _)| execution).collect();
        }
        self.counts
            .activities
            .fetch_add(restarted, Ordering::Relaxed);
        Ok(restarted)
    }

    /// Restarts the workers' activities in the turns once. Returns the turns with restarts, and the number of restarts. A
    /// turn that the engine refuses does not delay the other turns.
    async fn restart_once<'e>(
        &self,
        executions: &[&'e RunningAgentExecution],
        workers: &[WorkerId],
    ) -> Result<Vec<(&'e RunningAgentExecution, u32)>, LookError> {
        let mut ticks = interval(Duration::from_secs(1) / EXECUTIONS_A_SECOND);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let left = executions.iter().copied();
        let mut answers = stream::unfold((left, ticks), async |(mut left, mut ticks)| {
            let execution = left.next()?;
            ticks.tick().await;
            Some((execution, (left, ticks)))
        })
        .map(async |execution| {
            let answer = self.engine.restart_activities(execution, workers).await;
            answer.map(|count| (execution, count))
        })
        .buffer_unordered(AT_ONCE)
        .boxed();
        let (mut theirs, mut has_answered, mut failures) = (Vec::new(), false, 0);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok((execution, count)) => {
                    has_answered = true;
                    theirs.extend((count > 0).then_some((execution, count)));
                }
                Err(error) => {
                    failures += 1;
                    if !has_answered && failures >= AT_ONCE.min(executions.len()) {
                        return Err(error.into());
                    }
                    tracing::debug!(%error, "the engine did not list the activities of a dead worker");
                }
            }
        }
        Ok(theirs)
    }
}

fn workers(leases: &[SeenLease]) -> Vec<WorkerId> {
    leases.iter().map(|lease| lease.worker.clone()).collect()
}
