//! The stack that end-to-end tests run: real processes, the real Temporal server, and a model that does as told.
//!
//! - [`temporal`]: one Temporal dev server for all tests of a binary, and the `temporal` CLI
//! - [`model`]: a scripted model behind a real HTTP server, which counts what it is asked
//! - [`stack`]: worker and gateway processes of one test, with a database and a task queue of their own
//! - [`wait`]: waiting on conditions, never on time
//!
//! The tests themselves are in `tests/tests`.

// A test that cannot set up its stack should stop with a message, not return it.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

pub mod model;
pub mod stack;
pub mod temporal;
pub mod wait;
