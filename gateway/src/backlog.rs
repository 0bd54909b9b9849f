//! Records the waiting work of every tenant as metrics: tool calls that wait for approvals, and due checks of the
//! reconciler.
//!
//! Every gateway reads the counts from the store, so any gateway's metrics are complete.
//!
//! Must not be here: the counts (`everturn_store::Backlogs`), and the names of the metrics (`telemetry/`).

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use everturn_store::{Backlog, Backlogs};
use everturn_telemetry::gateway as telemetry;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The time between two reads. Prometheus seldom scrapes more often, and a read takes milliseconds.
const EVERY: Duration = Duration::from_secs(15);

/// Reads the waiting work again and again.
pub struct BacklogWatch {
    store: Arc<dyn Backlogs>,
}

impl BacklogWatch {
    /// Makes a watch. [`Self::run`] starts the reads.
    pub fn new(store: Arc<dyn Backlogs>) -> Self {
        Self { store }
    }

    /// Records the waiting work until `shutdown`. While the store is away, the last values stay.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let watching = async {
            loop {
                ticks.tick().await;
                let now = Utc::now();
                match self.store.backlog(now).await {
                    Ok(backlog) => record(&backlog, now),
                    Err(error) => tracing::debug!(%error, "cannot count the waiting work"),
                }
            }
        };
        let _ended: Option<()> = shutdown.run_until_cancelled(watching).await;
    }
}

fn record(backlog: &Backlog, now: DateTime<Utc>) {
    let age = |since: DateTime<Utc>| (now - since).to_std().unwrap_or_default();
    let approvals = backlog.approvals.iter();
    let approvals = approvals.map(|waiting| telemetry::WaitingApprovals {
        agent: &waiting.agent,
        calls: waiting.calls,
        oldest: age(waiting.oldest),
    });
    telemetry::approvals_waiting(approvals);
    let checks = &backlog.checks;
    telemetry::checks_due(checks.count, checks.oldest.map(age).unwrap_or_default());
}
