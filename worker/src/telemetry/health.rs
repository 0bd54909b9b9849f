//! The health of a process, for the systems that start, restart and replace it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use serde::Serialize;
use tokio::{runtime::Handle, time::timeout};
use tokio_util::sync::CancellationToken;

/// The time between two heartbeats of the process's runtime.
const BEAT: Duration = Duration::from_secs(1);
/// A runtime without a heartbeat for this time is stuck. The limit is longer than any stall of a busy machine, because
/// a restart repeats every call in flight.
const STALLED: Duration = Duration::from_secs(60);
/// The longest duration of a check. A slower process should get no traffic.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

type Check = Box<dyn Fn() -> BoxFuture<'static, Result<(), NotReady>> + Send + Sync>;

/// The reason why a process is not ready, as a part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReady(String);

impl NotReady {
    /// Returns an error with the reason.
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The state of the process.
pub(super) struct Health {
    runtime: Handle,
    waits_for: Mutex<&'static str>,
    running: Mutex<Vec<Arc<Running>>>,
    beat: Mutex<Instant>,
}

struct Running {
    check: Check,
    shutdown: CancellationToken,
}

/// The response to a probe.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
}

impl Answer {
    fn ok() -> Self {
        Self {
            status: "ok",
            detail: None,
        }
    }

    fn no(status: &'static str, detail: String) -> Self {
        Self {
            status,
            detail: Some(detail),
        }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.status == "ok"
    }
}

impl Health {
    /// Returns the health of a process that starts on the current runtime.
    pub(super) fn begin() -> Self {
        Self {
            runtime: Handle::current(),
            waits_for: Mutex::new("its configuration"),
            running: Mutex::default(),
            beat: Mutex::new(Instant::now()),
        }
    }

    pub(super) fn waits_for(&self, what: &'static str) {
        *self
            .waits_for
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = what;
    }

    pub(super) fn runs<F>(
        &self,
        shutdown: CancellationToken,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<(), NotReady>> + Send + 'static,
    {
        let check: Check = Box::new(move || Box::pin(check()));
        let running = Arc::new(Running { check, shutdown });
        self.running().push(running);
    }

    /// Returns the roles of the process: a single role, or two.
    fn running(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a heartbeat every second, forever. The caller spawns `beat` on the process's own runtime, so that a
    /// stuck runtime stops the heartbeats.
    pub(super) async fn beat(&self) {
        loop {
            *self.last_beat() = Instant::now();
            tokio::time::sleep(BEAT).await;
        }
    }

    fn last_beat(&self) -> MutexGuard<'_, Instant> {
        self.beat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runtime of the process.
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Returns whether the process is alive; if not, it must be restarted. The state of the database or of Temporal
    /// does not count, because a restart would not repair them.
    pub(super) fn live(&self) -> Answer {
        self.live_at(Instant::now())
    }

    fn live_at(&self, now: Instant) -> Answer {
        let since = now.saturating_duration_since(*self.last_beat());
        if since < STALLED {
            return Answer::ok();
        }
        let seconds = since.as_secs();
        Answer::no(
            "stalled",
            format!("the process has not run a task for {seconds} s; restart the process"),
        )
    }

    /// Returns whether the process has connected to its services and runs.
    pub(super) fn started(&self) -> Answer {
        if !self.running().is_empty() {
            return Answer::ok();
        }
        let waits_for = *self
            .waits_for
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Answer::no("starting", format!("it waits for {waits_for}"))
    }

    /// Returns whether the process can work now.
    pub(super) async fn ready(&self) -> Answer {
        let running = self.running().clone();
        if running.is_empty() {
            return self.started();
        }
        for role in &running {
            let answer = self.role_ready(role).await;
            if !answer.is_ok() {
                return answer;
            }
        }
        Answer::ok()
    }

    async fn role_ready(&self, running: &Running) -> Answer {
        if running.shutdown.is_cancelled() {
            return Answer::no("stopping", "it was told to stop".to_owned());
        }
        // The check uses the process's connections. Therefore the check runs on the runtime of the connections.
        let checked = timeout(CHECK_TIMEOUT, self.runtime.spawn((running.check)())).await;
        match checked {
            Ok(Ok(Ok(()))) => Answer::ok(),
            Ok(Ok(Err(NotReady(reason)))) => Answer::no("not_ready", reason),
            Ok(Err(_)) => Answer::no("not_ready", "the check failed".to_owned()),
            Err(_) => Answer::no("not_ready", "the check took too long".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_starts_runs_and_stops() {
        let health = Health::begin();
        health.waits_for("the database");
        let waiting = Answer::no("starting", "it waits for the database".to_owned());
        assert_eq!(health.started(), waiting);
        assert_eq!(health.ready().await, waiting);
        assert!(health.live().is_ok(), "it need not be restarted");
        let shutdown = CancellationToken::new();
        health.runs(shutdown.clone(), || std::future::ready(Ok(())));
        assert!(health.started().is_ok() && health.ready().await.is_ok());
        shutdown.cancel();
        assert_eq!(health.ready().await.status, "stopping");
        assert!(health.started().is_ok() && health.live().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_says_why_or_is_given_up() {
        let health = Health::begin();
        let away = || std::future::ready(Err(NotReady::because("the store is away")));
        health.runs(CancellationToken::new(), away);
        let answer = health.ready().await;
        assert_eq!(answer.detail.as_deref(), Some("the store is away"));
        let health = Health::begin();
        health.runs(CancellationToken::new(), std::future::pending);
        assert_eq!(health.ready().await.status, "not_ready");
    }

    #[tokio::test]
    async fn a_runtime_that_runs_nothing_is_to_be_restarted() {
        let health = Health::begin();
        let now = Instant::now();
        assert!(health.live_at(now + STALLED / 2).is_ok());
        assert_eq!(health.live_at(now + 2 * STALLED).status, "stalled");
    }
}
