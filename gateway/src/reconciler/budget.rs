//! The budget of a look: calls to the engine one after the other, until the time of the look is over.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::config::ReconcilerConfig;

/// The budget of one look.
pub(super) struct CallBudget {
    calls: Interval,
    lists: Interval,
    checks: u32,
    has_checked: bool,
    end: Instant,
}

impl CallBudget {
    /// Makes the budget of a look. The time of the look begins now.
    pub(super) fn new(config: &ReconcilerConfig) -> Self {
        Self {
            calls: spaced(config.between_calls()),
            lists: spaced(config.between_lists()),
            checks: config.checks_a_look(),
            has_checked: false,
            end: Instant::now() + config.look_time(),
        }
    }

    /// Waits until the budget allows the next call.
    pub(super) async fn next_call(&mut self) {
        self.calls.tick().await;
    }

    /// Waits until the budget allows the next list.
    pub(super) async fn next_list(&mut self) {
        self.lists.tick().await;
    }

    /// Takes a conversation's look of its own from the budget. Returns false when the budget is used up. The first
    /// conversation always gets its look, because otherwise a slow store or a slow list would keep every conversation
    /// from a look for ever.
    pub(super) fn takes_check(&mut self) -> bool {
        let is_used_up = self.checks == 0 || (self.has_checked && self.is_over());
        if !is_used_up {
            self.checks -= 1;
            self.has_checked = true;
        }
        !is_used_up
    }

    /// True when the time of the look is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

fn spaced(pause: Duration) -> Interval {
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
