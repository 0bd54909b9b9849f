//! The locks, clocks and tasks of the files that `tests/interleavings` checks. The checks compile these files with a module of
//! this name, whose locks let a test choose the order of the threads.

pub(crate) use std::sync::{Mutex, MutexGuard, atomic::AtomicUsize};

pub(crate) use tokio::{
    spawn,
    time::{Instant, sleep, sleep_until, timeout},
};
