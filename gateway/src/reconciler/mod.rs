//! Puts stalled conversations right without a request of a client: a message or a cancel with a lost signal, and a turn
//! without a workflow. Starts the hooks after a turn if the workflow of the conversation was lost before their start.
//!
//! Every gateway runs one reconciler. Once in every `every`, a row in the store chooses one gateway for a look. The gateway
//! takes conversations without an event for `grace`, a batch at a time. A list of the engine tells which workflows of a
//! batch run, so a quiet turn costs a share of a call. The remaining conversations get a look of their own ([`look`]): the
//! gateway asks the engine for the workflow, and takes the action of [`decide`]. These calls are spaced at
//! `calls_per_second`, however many conversations have stalled. The rest of the time goes to workflows that have to act
//! and do not act: the gateway counts and logs a workflow with a task that fails again and again, and changes nothing.
//!
//! Must not be here: which turns have not ended (`everturn_store::Reconciliation`), how a turn is started (`turns`).

mod budget;
mod counts;
mod decide;
mod look;
mod parts;
mod quiet;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use everturn_store::{CheckPace, Reconciliation};
use everturn_stream::CancelNews;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub use self::{
    counts::{ReconcilerCounts, ReconcilerNumbers},
    parts::LookError,
};
use self::{look::Look, parts::Parts};
use crate::{config::ReconcilerConfig, turns::TurnStarter};

/// The most conversations that a look reads to find the stalled conversations. The next look goes on with the rest.
/// PostgreSQL reads 100,000 running turns within about a second, which a look can spend.
const WALK: u32 = 100_000;

/// Finds stalled conversations, and puts them right.
pub struct Reconciler {
    parts: Parts,
}

impl Reconciler {
    /// Makes a reconciler. [`Self::run`] starts the looks.
    pub fn new(
        store: Arc<dyn Reconciliation>,
        turns: Arc<dyn TurnStarter>,
        cancels: Arc<dyn CancelNews>,
        config: ReconcilerConfig,
    ) -> Self {
        Self {
            parts: Parts::new(store, turns, cancels, config),
        }
    }

    /// Returns the counters.
    pub fn counts(&self) -> Arc<ReconcilerCounts> {
        Arc::clone(&self.parts.counts)
    }

    /// Looks again and again, until `shutdown` is cancelled.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut ticks = interval(self.parts.config.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_away = false;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let looked = tokio::select! {
                () = shutdown.cancelled() => return,
                looked = self.look(Utc::now()) => looked,
            };
            match looked {
                Ok(()) => is_away = false,
                // An outage logs one message.
                Err(error) if !is_away => {
                    is_away = true;
                    tracing::warn!(%error, "cannot look for stalled turns; trying again");
                }
                Err(error) => tracing::debug!(%error, "cannot look for stalled turns"),
            }
        }
    }

    /// Looks once, when the store chooses this gateway. [`Self::run`] looks at the present time, and a simulation chooses
    /// `now`.
    ///
    /// # Errors
    ///
    /// An error when the store or the engine does not answer. A later look continues.
    pub async fn look(&self, now: DateTime<Utc>) -> Result<(), LookError> {
        let (store, config) = (&self.parts.store, &self.parts.config);
        let pace = CheckPace {
            now,
            asked_before: now - delta(config.look_time()),
            stalled_since: now - delta(config.grace),
            idle_since: now - delta(config.stuck_after),
            again: now + delta(config.again),
            walk: WALK,
            limit: config.list_size.get(),
        };
        if !store.begin_look(&pace).await? {
            return Ok(());
        }
        let mut look = Look::new(&self.parts, &pace);
        loop {
            let batch = store.due_checks(&pace).await?;
            let (rest, checked) = look.check(batch.checks).await;
            // With a slow engine, a look checks only the first conversations. The unchecked conversations keep their
            // rank for the next look. Otherwise every look might check the same conversations.
            let is_at_end = !rest.is_empty() || !batch.has_more || look.is_over();
            if !rest.is_empty() {
                store.put_back_checks(&rest).await?;
            }
            checked?;
            if is_at_end {
                break;
            }
        }
        look.start_hooks().await?;
        look.find_stuck().await
    }
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}
