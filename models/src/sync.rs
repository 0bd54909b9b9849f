//! The locks and the clock of the gate, which `tests/interleavings` checks. The checks compile the gate with a module of
//! this name, whose locks let a test choose the order of the threads.

pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use tokio::time::{Instant, sleep_until};
