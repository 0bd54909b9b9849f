//! What one look may ask of the engine: one call after the other, until its time is over.

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::config::ReconcilerConfig;

/// The calls of one look.
pub(super) struct CallBudget {
    ticks: Interval,
    end: Instant,
}

impl CallBudget {
    /// Makes the budget of a look that begins now.
    pub(super) fn new(config: &ReconcilerConfig) -> Self {
        let mut ticks = interval(config.between_calls());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            ticks,
            end: Instant::now() + config.look_time(),
        }
    }

    /// Waits until the next call may be made.
    pub(super) async fn next(&mut self) {
        self.ticks.tick().await;
    }

    /// True when the look has no time left to begin something.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}
