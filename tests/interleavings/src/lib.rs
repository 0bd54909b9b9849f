//! Checks of the small locks: the product's files, compiled with locks whose threads a scheduler orders.
//!
//! Each check runs its threads in a thousand orders, which follow from a seed. A thread can lose the processor at every
//! lock, at every atomic number and at every wait. A thread that nobody wakes is a failure, because time stands still.
//!
//! - `models`: the gate of a provider
//! - `think`: the known contexts of a worker
//! - `limits`: the requests, the streams and the memory of a tenant
//! - `live`: the broadcasts of the running tails, and the queues of their readers
//! - `sync`: the locks, the clock and the tasks; `orders`: the schedulers
//! - `config`, `fields`: modules that the product's files name
//!
//! Must not be here: the behaviour of a file in one thread, which the unit tests of the file show.

// The unit tests of the files need the product's own locks.
#![cfg(not(test))]
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod config;
#[path = "../../../gateway/src/fields.rs"]
#[allow(dead_code)]
mod fields;
pub mod limits;
pub mod live;
pub mod models;
mod orders;
mod sync;
pub mod think;
