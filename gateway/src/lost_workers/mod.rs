//! Has what a dead worker was doing begin again at other workers, seconds before its heartbeats are late.
//!
//! A worker that has stopped by itself was doing nothing. But the engine may have given it an activity that did not reach it
//! (docs/engine.md, a worker that stops), and no heartbeat comes of that one either. So the same is done for it.
//!
//! Each gateway looks at the leases of all workers. One whose lease was not renewed for too long (`signs`) is dead, or
//! stands still, and one gateway takes over what is left of it: it asks the engine which activities that worker has begun,
//! those of the turns in which it made the last claims first, and fails them, so that the engine gives them to others at
//! once. A worker that was taken for dead and is not does no harm: its claims are fenced (invariant 5, paid once;
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

/// How often a gateway reads the leases. It is one statement that reads as many rows as there are workers.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The longest pause between two looks. After a longer one, what was seen before says nothing: the database was away, or
/// this gateway stood still.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The most turns, with sub-agents, that are looked at when a worker has died: those that it held, and others, in case
/// that it had just begun with them. Heartbeats find the rest.
const MAX_AGENT_EXECUTIONS: u32 = 1000;
/// The most turns that are looked at again later.
const MAX_AGENT_EXECUTIONS_AGAIN: u32 = 100;
/// A worker that stands still, or whose machine is gone, may be given tasks for so long: the engine has its polls, which
/// last for a minute. Until then its turns are looked at again and again, each time that its lease is over.
const LINGER: Duration = Duration::from_secs(65);
/// How often the lease of a worker that has ended is taken: it has no polls any more, so the turns are looked at once more,
/// for what the engine was just giving it.
const TAKES_OF_ENDED: u32 = 2;
/// An activity that begins again may be given to such a worker again. It has five polls, so after so many rounds none is
/// left.
const ROUNDS: u32 = 7;
/// The pause between two rounds. In this time the engine has given an activity that begins again to a worker.
const ROUND_PAUSE: Duration = Duration::from_millis(100);
/// Turns looked at in a second. The engine gets one call for each, and two or three for each that the worker held: some
/// percent of what a small engine can do, and 200 activities of a dead worker begin again within a second.
const EXECUTIONS_A_SECOND: u32 = 200;
/// Turns looked at at a time, so that an engine that is slow to answer is not asked for more and more. When it answers
/// none of so many, it is away.
const AT_ONCE: usize = 8;
/// The number of turns after which the lease is taken anew, so that no other gateway takes it meanwhile.
const EXECUTIONS_A_TAKE: usize = 100;

/// Looks for workers that are dead, and restarts what they were doing.
pub struct LostWorkerWatch {
    store: Arc<dyn LostWorkers>,
    engine: Arc<dyn ActivityRestarter>,
    counts: Arc<LostWorkerCounts>,
    linger: Duration,
}

/// What was found and done, counted for metrics from the start of the process.
#[derive(Debug, Default)]
pub struct LostWorkerCounts {
    looks: AtomicU64,
    workers: AtomicU64,
    activities: AtomicU64,
}

impl LostWorkerCounts {
    /// How often the leases were looked at.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Workers that were found dead, and that this gateway saw to.
    pub fn workers(&self) -> u64 {
        self.workers.load(Ordering::Relaxed)
    }

    /// Activities of such workers, and of workers that have ended, that begin again.
    pub fn activities(&self) -> u64 {
        self.activities.load(Ordering::Relaxed)
    }
}

/// Why a look was ended early. What is left to do is done later, by this gateway or another one.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] TurnError),
}

impl LostWorkerWatch {
    /// Makes a watch, which does nothing until it runs.
    pub fn new(store: Arc<dyn LostWorkers>, engine: Arc<dyn ActivityRestarter>) -> Self {
        Self {
            store,
            engine,
            counts: Arc::default(),
            linger: LINGER,
        }
    }

    /// Sets for how long the turns of a dead worker are looked at again. Default 65 s.
    #[must_use]
    pub fn lingering(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }

    /// What it has found and done so far.
    pub fn counts(&self) -> Arc<LostWorkerCounts> {
        Arc::clone(&self.counts)
    }

    /// Looks again and again, until `shutdown` is cancelled.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut ticks = interval(LOOK_EVERY);
        // Two looks are never closer to each other than that, so a number of looks stands for a time.
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
                    // One message for an outage is enough.
                    if !std::mem::replace(is_away, true) {
                        tracing::warn!(%error, "cannot see to workers that are dead; trying again");
                    }
                }
            }
        }
    }

    /// Looks once, and sees to the workers that are dead. Returns whether the engine was asked.
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
            tracing::warn!(workers = ?dead, "workers are dead: what they were doing begins again");
            self.counts
                .workers
                .fetch_add(dead.len() as u64, Ordering::Relaxed);
        }
        let restarted = self.see_to(taken, limit).await?;
        if restarted > 0 {
            tracing::info!(restarted, "activities of workers that are gone begin again");
        }
        Ok(true)
    }

    /// Restarts what these workers had been given, and removes their leases after a while. Returns the number of activities.
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

    /// Takes the leases again. Those of workers that live after all are left out.
    async fn take_again(&self, taken: Vec<SeenLease>) -> Result<Vec<SeenLease>, LookError> {
        let mut again = Vec::with_capacity(taken.len());
        for lease in taken {
            again.extend(self.store.take_lease(&lease).await?);
        }
        Ok(again)
    }

    /// Restarts the activities of these workers in these turns, until others have them. Returns how often.
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

    /// Restarts the activities of these workers in these turns. Returns the turns that had some, and how many. One turn
    /// that the engine does not take must not keep the others waiting.
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
                    tracing::debug!(%error, "the engine did not say what a dead worker was doing");
                }
            }
        }
        Ok(theirs)
    }
}

fn workers(leases: &[SeenLease]) -> Vec<WorkerId> {
    leases.iter().map(|lease| lease.worker.clone()).collect()
}
