//! One attempt of an activity: kept alive by heartbeats, ended by its deadline, by a cancel or by its own result.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use everturn_proto::words::FailureCode;
use everturn_store::StoreError;
use everturn_supervisor::failpoint;
use everturn_tools::Progress;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;
use tokio_util::sync::CancellationToken;

use crate::{
    cancels::{Cancels, Watched},
    failure::{self as fail, Tries},
    pulse::{Pulse, Sign},
    stopping::Stopping,
    store_call::counted,
};

/// The margin between an attempt's own end and the engine's deadline, in which the end is recorded: at most this
/// constant, at most a tenth of the attempt's time. The margin matters for older workflows, whose engine time-out
/// equals the activity's limit.
const DEADLINE_MARGIN: Duration = Duration::from_secs(2);

/// The shortest and the longest pause between two calls of a store that does not answer: short enough for a restart,
/// long enough for an outage.
const MIN_STORE_WAIT: Duration = Duration::from_millis(100);
const MAX_STORE_WAIT: Duration = Duration::from_secs(2);
/// The time for which an unknown error of the store counts as temporary.
const UNEXPECTED_LIMIT: Duration = Duration::from_secs(30);

/// The causes outside an attempt that end it: a cancel of its turn, and the worker's shutdown.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    pub(crate) cancels: Cancels,
    pub(crate) stopping: Stopping,
}

/// The end of an attempt.
pub(crate) enum Ended<T> {
    /// The work gave its result.
    Done(T),
    /// The attempt was stopped: the turn was cancelled, the run is gone, or the worker stops.
    Stopped,
    /// The attempt reached its limit.
    OutOfTime,
}

/// One attempt, from the start on this worker.
pub(crate) struct Attempt<'a> {
    pub(crate) ctx: &'a ActivityContext,
    stopping: &'a Stopping,
    cancels: &'a Cancels,
    /// The watch for announced cancels; `None` for a local activity, which the engine does not know.
    watched: Option<Watched>,
    begun: Instant,
    /// The engine's time limit; `None`: unlimited.
    limit: Option<Duration>,
}

impl<'a> Attempt<'a> {
    /// Begins the attempt of this activity of an agent execution.
    ///
    /// The engine reports the start and the deadline of the attempt by the engine's clock. The attempt uses only the
    /// difference, by the worker's monotonic clock: a worker with a wrong wall clock would end its attempts at once, or
    /// long after the engine has repeated them.
    pub(crate) fn begin(
        ends: &'a Ends,
        ctx: &'a ActivityContext,
        agent_execution_id: &str,
    ) -> Self {
        let info = ctx.info();
        let limit = info.deadline.zip(info.started_time);
        let watch = || ends.cancels.watch(agent_execution_id);
        Self {
            ctx,
            stopping: &ends.stopping,
            cancels: &ends.cancels,
            watched: (!info.is_local).then(watch),
            begun: Instant::now(),
            limit: limit.map(|(end, start)| end.duration_since(start).unwrap_or_default()),
        }
    }

    /// Runs `work` as the attempt, for `limit` at the most. Any other end of the attempt drops the work. Heartbeats
    /// report the progress.
    pub(crate) async fn run<T>(
        &self,
        progress: &Progress,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Ended<T> {
        tokio::select! {
            biased;
            done = work => Ended::Done(done),
            () = self.ctx.cancelled() => Ended::Stopped,
            () = self.announced(progress) => Ended::Stopped,
            () = self.stopping.is_over() => Ended::Stopped,
            () = tokio::time::sleep(limit.min(self.time_left())) => Ended::OutOfTime,
            () = self.heartbeats(progress) => Ended::Stopped,
        }
    }

    /// Waits until a cancel is announced and confirmed by the engine.
    async fn announced(&self, progress: &Progress) {
        match &self.watched {
            Some(watched) => watched.cancelled(self.ctx, progress).await,
            None => std::future::pending().await,
        }
    }

    /// Calls the store until it answers, at most until the attempt's deadline: a paid answer or a tool's outcome would
    /// be lost with the attempt. Sends heartbeats meanwhile. A cancel does not end the calls, because finished work
    /// must be recorded. The end of the worker's grace period does, because the process would be killed soon.
    pub(crate) async fn insist<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T, ActivityError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        self.insist_on_blobs(|| counted(call())).await
    }

    /// Reads or writes a blob as [`Attempt::insist`] calls the store. The metric of failed calls does not count blobs.
    pub(crate) async fn insist_on_blobs<T, F>(
        &self,
        call: impl FnMut() -> F,
    ) -> Result<T, ActivityError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let nothing = Progress::default();
        let answer = tokio::select! {
            biased;
            answer = until_available(call) => answer,
            () = self.stopping.is_over() => return Err(fail::store_away()),
            () = tokio::time::sleep(self.time_left()) => return Err(fail::store_away()),
            () = self.heartbeats(&nothing) => return Err(fail::store_away()),
        };
        answer.map_err(|error| fail::from_store(&error, Tries::Over))
    }

    /// Sends heartbeats for ever.
    async fn heartbeats(&self, progress: &Progress) {
        let sign = || Sign {
            hearing: self.cancels.hearing(),
            progress: progress.latest(),
        };
        let mut pulse = Pulse::begin(self.ctx.info().heartbeat_timeout, sign());
        loop {
            tokio::time::sleep(pulse.tick()).await;
            let Some(sign) = pulse.due(sign()) else {
                continue;
            };
            failpoint::reach("attempt.heartbeat").await;
            if let Err(error) = self.ctx.record_heartbeat(sign.progress.clone()).await {
                tracing::warn!(%error, "a heartbeat could not be encoded");
            }
        }
    }

    /// Returns the failure of a tool's attempt that was stopped from outside.
    pub(crate) fn stopped(&self) -> ActivityError {
        if self.is_worker_stopping() {
            return fail::transient(
                FailureCode::Internal,
                "The worker shut down while the tool ran.",
            );
        }
        ActivityError::cancelled()
    }

    /// True after the worker's shutdown has begun.
    pub(crate) fn is_worker_stopping(&self) -> bool {
        self.stopping.has_begun()
    }

    /// Returns the token that is cancelled when the worker begins to stop.
    pub(crate) fn worker_stops(&self) -> CancellationToken {
        self.stopping.begun()
    }

    /// Returns the time since the attempt's start.
    pub(crate) fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the rest of the attempt's time.
    pub(crate) fn time_left(&self) -> Duration {
        let left = self.time_to_deadline();
        left.saturating_sub(DEADLINE_MARGIN.min(left / 10))
    }

    fn time_to_deadline(&self) -> Duration {
        // Without a deadline the time is unlimited. A year is long enough, and does not overflow a timer.
        const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        self.limit.map_or(UNLIMITED, |limit| {
            limit.saturating_sub(self.begun.elapsed())
        })
    }
}

async fn until_available<T, F>(mut call: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut wait = MIN_STORE_WAIT;
    let begun = Instant::now();
    loop {
        match call().await {
            Err(error)
                if error.is_retryable()
                    || (error.is_unexpected() && begun.elapsed() < UNEXPECTED_LIMIT) =>
            {
                tracing::warn!(%error, "waiting for the store");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(MAX_STORE_WAIT);
            }
            answer => return answer,
        }
    }
}
