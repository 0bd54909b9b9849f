//! The lock of the known contexts, which `tests/interleavings` checks. The checks compile the file with a module of
//! this name, whose locks let a test choose the order of the threads.

pub(crate) use std::sync::{Mutex, MutexGuard};
