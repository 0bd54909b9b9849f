//! The stack that end-to-end tests run: real processes, the real Temporal server, and a model that does as told.
//!
//! - [`temporal`]: one Temporal server for all tests of a binary, and the `temporal` CLI
//! - [`temporal_cluster`]: the production Temporal server, on PostgreSQL
//! - [`postgres`], [`redis`]: servers of one's own, to work with and to break
//! - [`server`]: what these three have in common: a process on a leash, which ends with the tests
//! - [`backends`]: embedded or production, by the environment
//! - [`mcp`]: MCP servers that nobody here wrote
//! - [`model`]: a scripted model behind a real HTTP server, which counts what it is asked
//! - [`reader`]: a reader that is cut and comes back, and the rules that no frame may break
//! - [`proxy`]: a connection that holds its answers back
//! - [`stack`]: worker and gateway processes of one test, with a database and a task queue of their own
//! - [`crowd`], [`arena`]: thousands of readers over raw TCP, and what they read from
//! - [`wait`]: waiting on conditions, never on time
//! - [`random`]: numbers by a seed
//!
//! The tests themselves are in `tests/tests`.

// A test that cannot set up its stack should stop with a message, not return it.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod account;
pub mod arena;
pub mod backends;
pub mod crowd;
pub mod mcp;
pub mod model;
pub mod ports;
pub mod postgres;
pub mod proxy;
pub mod random;
pub mod reader;
pub mod redis;
mod search_attributes;
pub mod server;
pub mod stack;
pub mod temporal;
pub mod temporal_cluster;
pub mod wait;
