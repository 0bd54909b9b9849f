//! One attempt of an activity: kept alive by heartbeats, ended by its deadline, by a cancel or by itself.

use std::{
    future::Future,
    time::{Duration, SystemTime},
};

use temporalio_sdk::activities::ActivityContext;

/// Between two heartbeats; the heartbeat time-out is 5 s, so that a worker may stall for a while.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// An attempt ends itself this long before the engine would, so that its end is recorded: at most this, at most
/// a tenth of its time.
const DEADLINE_MARGIN: Duration = Duration::from_secs(2);

/// How an attempt ended.
pub(crate) enum Ended<T> {
    /// By itself.
    Done(T),
    /// The engine asked it to stop: the turn was cancelled, the run is gone, or the worker shuts down.
    Stopped,
    /// It ran out of its start-to-close time.
    OutOfTime,
}

/// Runs `work` as the attempt of `ctx`. The work is dropped when the attempt ends otherwise.
pub(crate) async fn run<T>(ctx: &ActivityContext, work: impl Future<Output = T>) -> Ended<T> {
    tokio::select! {
        biased;
        done = work => Ended::Done(done),
        () = ctx.cancelled() => Ended::Stopped,
        () = tokio::time::sleep(time_left(ctx)) => Ended::OutOfTime,
        () = heartbeat(ctx) => Ended::Stopped,
    }
}

async fn heartbeat(ctx: &ActivityContext) {
    loop {
        if let Err(error) = ctx.record_heartbeat(()).await {
            tracing::warn!(%error, "a heartbeat could not be encoded");
        }
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}

fn time_left(ctx: &ActivityContext) -> Duration {
    // No deadline is the engine's word for "unlimited"; a year is as good and does not overflow a timer.
    const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let Some(deadline) = ctx.info().deadline else { return UNLIMITED };
    let left = deadline.duration_since(SystemTime::now()).unwrap_or_default();
    left.saturating_sub(DEADLINE_MARGIN.min(left / 10))
}
