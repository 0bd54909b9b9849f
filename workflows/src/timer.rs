//! Waits that end at a time: the only home of `WorkflowContext::timer` (`clippy.toml` of the crate).
//!
//! Must not be here: the decision after a wait.

use std::{pin::pin, time::Duration};

use futures::FutureExt;
use temporalio_workflow::{TimerOptions, WorkflowCancellationToken, WorkflowContext, select};

/// Awaits `awaited` for `longest` at the most. Returns `None` when the time is over first. The wait holds no worker.
///
/// The timer has a token of its own. A token that a signal or the engine cancels must not stop a timer: one workflow task
/// may bring the cancel and then the end of the timer, and the SDK panics at the end of a timer that the cancel has
/// already stopped (docs/libraries.md, Temporal SDK: a cancel beside the end of a timer).
pub(crate) async fn within<W, T>(
    ctx: &WorkflowContext<W>,
    longest: Duration,
    summary: &str,
    awaited: impl Future<Output = T>,
) -> Option<T> {
    let token = WorkflowCancellationToken::new();
    let options = TimerOptions::builder(longest)
        .cancellation_token(token.clone())
        .summary(summary.to_owned())
        .build();
    let mut awaited = pin!(awaited.fuse());
    #[expect(clippy::disallowed_methods, reason = "the home of timers")]
    let timer = ctx.timer(options);
    let outcome = select! {
        outcome = awaited => Some(outcome),
        _ = timer.fuse() => None,
    };
    // An open timer would wake the workflow at its time, long after the end of the wait.
    token.cancel();
    outcome
}
