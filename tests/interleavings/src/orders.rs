//! The orders in which the threads of a check run.

use std::sync::Arc;

use shuttle::{
    Config, MaxSteps, Runner,
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
};

/// The seed of the orders. A failure prints its order, and the same seed leads to the same failure.
const SEED: u64 = 1;

/// The orders of a check, for each of the two schedulers.
const ORDERS: usize = 500;

/// The most changes between threads in an order of the second scheduler. Most mistakes need one change or two.
const CHANGES: usize = 3;

/// The stack of a thread, in bytes. Builds without optimisation need more than the library's default.
const STACK: usize = 256 * 1024;

/// The most steps of an order. An order with more steps has no end.
const STEPS: usize = 20_000;

/// Runs the threads of a check in many orders. A failure in one order fails the check.
pub(crate) fn in_many_orders(check: impl Fn() + Send + Sync + 'static) {
    let check = Arc::new(check);
    run(&check, RandomScheduler::new_from_seed(SEED, ORDERS));
    run(&check, PctScheduler::new_from_seed(SEED, CHANGES, ORDERS));
}

fn run(check: &Arc<impl Fn() + Send + Sync + 'static>, scheduler: impl Scheduler + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(STEPS);
    // The warning is about docs/libraries.md, shuttle: it shows strong memory orders alone.
    config.silence_warnings = true;
    let check = Arc::clone(check);
    Runner::new(scheduler, config).run(move || check());
}
