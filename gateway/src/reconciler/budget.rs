//! The budget of a look: calls to the engine one after the other, until the time of the look is over.

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::config::ReconcilerConfig;

/// The budget of one look.
pub(super) struct CallBudget {
    ticks: Interval,
    end: Instant,
}

impl CallBudget {
    /// Makes the budget of a look. The time of the look begins now.
    pub(super) fn new(config: &ReconcilerConfig) -> Self {
        let mut ticks = interval(config.between_calls());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            ticks,
            end: Instant::now() + config.look_time(),
        }
    }

    /// Waits until the budget allows the next call.
    pub(super) async fn next(&mut self) {
        self.ticks.tick().await;
    }

    /// True when the time of the look is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}
