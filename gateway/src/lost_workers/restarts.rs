//! Restarts the activities of workers whose leases this gateway has taken, beginning with the turns of the workers' last
//! claims. Must not be here: which workers are dead (`signs`).

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_store::{LostWorkers, RunningAgentExecution, SeenLease, StoreError, WorkerId};
use futures::{StreamExt, stream};
use tokio::{
    sync,
    time::{Interval, MissedTickBehavior, interval, sleep},
};
use tokio_util::sync::CancellationToken;

use super::counts::LostWorkerCounts;
use crate::turns::{ActivityRestarter, TurnError};

/// The most agent executions that a gateway looks at for a dead worker: those with a claim of the worker, and agent executions that
/// the worker may have just begun. Missed heartbeats find the rest.
const MAX_AGENT_EXECUTIONS: u32 = 1000;
/// The most agent executions that a gateway looks at in a later look.
const MAX_AGENT_EXECUTIONS_AGAIN: u32 = 100;
/// How often gateways take the lease of a stopped worker. The worker has no polls any more. The second look finds activities
/// that the engine was giving the worker during the first look.
const TAKES_OF_ENDED: u32 = 2;
/// The rounds of restarts in a look. The engine may give a restarted activity to the dead worker again, at most once for
/// each of the worker's five polls.
const ROUNDS: u32 = 7;
/// The pause between two rounds, within which the engine gives a restarted activity to a worker.
const ROUND_PAUSE: Duration = Duration::from_millis(100);
/// The agent executions that a gateway looks at in a second, in all groups together. The engine gets a call for every agent
/// execution, and two or three calls where the worker had an activity. A small engine spends some percent of its capacity,
/// and 200 activities of a dead worker begin again within a second.
const EXECUTIONS_A_SECOND: u32 = 200;
/// The agent executions of parallel calls. With a limit, calls do not pile up at a slow engine. When every call
/// of a part fails, the engine counts as away.
const AT_ONCE: usize = 8;
/// The number of agent executions between two checks whether the workers are still silent. The rounds of restarts are for
/// a part, so that an activity that the engine gave to a dead worker again waits half a second at the most.
const PART: usize = 100;
/// The pause of the holds in a group whose workers are all awake again. The restarts then end soon.
const NOTHING_TO_HOLD: Duration = Duration::from_secs(1);

/// Restarts activities in the engine.
pub(super) struct Restarts {
    store: Arc<dyn LostWorkers>,
    engine: Arc<dyn ActivityRestarter>,
    counts: Arc<LostWorkerCounts>,
    linger: Duration,
    /// Ticks for each agent execution. Groups wait for ticks in turn.
    pace: sync::Mutex<Interval>,
    /// True after a failure, until a group succeeds.
    is_away: AtomicBool,
}

/// Why the restarts of a group ended early. A later look, by any gateway, does the rest.
#[derive(Debug, thiserror::Error)]
enum RestartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] TurnError),
}

/// The leases that this gateway holds for a group, as of the last hold.
struct Held(Mutex<Vec<SeenLease>>);

impl Held {
    fn leases(&self) -> Vec<SeenLease> {
        let leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.clone()
    }

    fn set(&self, leases: Vec<SeenLease>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = leases;
    }

    fn workers(&self) -> Vec<WorkerId> {
        let leases = self.leases().into_iter();
        leases.map(|lease| lease.worker).collect()
    }
}

impl Restarts {
    /// Begins the pace. The runtime must have timers. `linger` is the time for which gateways look at the turns of a dead
    /// worker again.
    pub(super) fn new(
        store: Arc<dyn LostWorkers>,
        engine: Arc<dyn ActivityRestarter>,
        counts: Arc<LostWorkerCounts>,
        linger: Duration,
    ) -> Self {
        let mut pace = interval(Duration::from_secs(1) / EXECUTIONS_A_SECOND);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            store,
            engine,
            counts,
            linger,
            pace: sync::Mutex::new(pace),
            is_away: AtomicBool::new(false),
        }
    }

    /// Restarts the activities of the workers with these leases, and removes the leases after a while.
    pub(super) async fn see_to(&self, taken: Vec<SeenLease>) {
        match self.restarted(taken).await {
            Ok(restarted) => {
                self.is_away.store(false, Ordering::Relaxed);
                if restarted > 0 {
                    tracing::info!(
                        restarted,
                        "activities of dead or stopped workers begin again"
                    );
                }
            }
            // An outage logs one message.
            Err(error) if !self.is_away.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, "cannot restart the activities of dead workers; trying again");
            }
            Err(_) => {}
        }
    }

    /// Does the work of [`Self::see_to`]. Returns the number of restarted activities.
    async fn restarted(&self, taken: Vec<SeenLease>) -> Result<u64, RestartError> {
        let is_first = taken.iter().any(|lease| lease.takes == 1);
        let limit = if is_first {
            MAX_AGENT_EXECUTIONS
        } else {
            MAX_AGENT_EXECUTIONS_AGAIN
        };
        let (held, done) = (Held(Mutex::new(taken)), CancellationToken::new());
        let restarting = async {
            let restarted = self.restart_all(&held, limit).await;
            done.cancel();
            restarted
        };
        let (restarted, ()) = tokio::join!(restarting, self.hold(&held, &done));
        let restarted = restarted?;
        for lease in held.leases() {
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

    /// Keeps the leases from other gateways until `done`, and leaves out workers that have renewed their leases.
    async fn hold(&self, held: &Held, done: &CancellationToken) {
        loop {
            let leases = held.leases();
            let shortest = leases.iter().map(|lease| lease.duration).min();
            tokio::select! {
                () = done.cancelled() => return,
                () = sleep(shortest.map_or(NOTHING_TO_HOLD, |shortest| shortest / 2)) => {}
            }
            let mut still = Vec::with_capacity(leases.len());
            for lease in leases {
                match self.store.hold_lease(&lease).await {
                    Ok(again) => still.extend(again),
                    // Without a hold for the duration of the lease, another gateway takes the lease, and the next hold
                    // leaves the worker out.
                    Err(error) => {
                        tracing::debug!(%error, "the lease of a dead worker could not be held");
                        still.push(lease);
                    }
                }
            }
            held.set(still);
        }
    }

    async fn restart_all(&self, held: &Held, limit: u32) -> Result<u64, RestartError> {
        let workers = held.workers();
        let executions = self.store.running_agent_executions(&workers, limit).await?;
        let mut restarted = 0;
        for part in executions.chunks(PART) {
            restarted += self.restart(part, held).await?;
        }
        Ok(restarted)
    }

    /// Restarts the activities of the held workers in these turns until living workers have the activities. Returns the
    /// number of restarts.
    async fn restart(
        &self,
        executions: &[RunningAgentExecution],
        held: &Held,
    ) -> Result<u64, RestartError> {
        let mut left: Vec<_> = executions.iter().collect();
        let mut restarted = 0;
        for round in 0..ROUNDS {
            let workers = held.workers();
            if left.is_empty() || workers.is_empty() {
                break;
            }
            if round > 0 {
                sleep(ROUND_PAUSE).await;
            }
            let theirs = self.restart_once(&left, &workers).await?;
            let count: u64 = theirs.iter().map(|(_, count)| u64::from(*count)).sum();
            self.counts.add_activities(count);
            restarted += count;
            left = theirs.into_iter().map(|(execution, _)| execution).collect();
        }
        Ok(restarted)
    }

    /// Restarts the workers' activities in the turns once. Returns the turns with restarts, and the number of restarts. A
    /// turn that the engine refuses does not delay the other turns.
    async fn restart_once<'e>(
        &self,
        executions: &[&'e RunningAgentExecution],
        workers: &[WorkerId],
    ) -> Result<Vec<(&'e RunningAgentExecution, u32)>, RestartError> {
        let left = executions.iter().copied();
        let mut answers = stream::unfold(left, async |mut left| {
            let execution = left.next()?;
            self.pace.lock().await.tick().await;
            Some((execution, left))
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
