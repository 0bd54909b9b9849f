//! The stack that end-to-end tests run: real processes, the real Temporal server, and a scripted model.
//!
//! - [`stack`]: worker and gateway processes of one test, with a database and a task queue of their own
//! - [`backends`]: the embedded or the production backends, as the path of a test or an environment variable says
//! - [`temporal`]: one Temporal server for all tests of a binary, and the `temporal` CLI
//! - [`model`]: a scripted model behind a real HTTP server, which counts what it is asked
//! - [`responses`]: a scripted model behind OpenAI's Responses API, whose responses run in the background
//! - [`aimock`]: providers as another project mocks them
//! - [`mcp`]: MCP servers of other projects
//! - [`blocks`]: the commands of a document, to run them
//! - [`python`]: the worker of `examples/python-tool`
//! - `failpoints`: workers and tool executions that stop where a test says
//! - [`events`]: helpers that read the events of a conversation
//! - [`reader`]: a reader that is cut and comes back, and the rules that no frame may break
//! - [`crowd`], [`arena`]: thousands of readers over raw TCP, and the processes that they read from
//! - [`collector`]: a receiver of OTLP, which collects spans
//! - [`count`]: a number that rises in other tasks, and that a test waits for
//! - [`engine_dump`]: everything that Temporal and Redis keep, as text
//! - [`hostile`]: a tenant that attacks a gateway in every way at once
//! - `http`: the HTTP client
//! - [`append`]: turns that nobody runs, whose batches are saved without a worker
//! - [`outage`]: messages that come while the engine is away
//! - [`soak`]: many short turns, and what they leave
//! - `validated`: the validators of requests before the scripted models
//! - [`random`]: pseudo-random numbers from a seed
//!
//! PostgreSQL, Redis, the production Temporal server, the TCP proxy and waiting are in `tests/servers`, and can be named
//! through this crate. The tests themselves are in `tests/tests`.

// A test that cannot set up its stack should stop with a message and not return an error, so it may panic.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

pub mod aimock;
pub mod append;
pub mod arena;
pub mod backends;
pub mod blocks;
pub mod collector;
pub mod count;
pub mod crowd;
pub mod engine_dump;
pub mod events;
mod failpoints;
pub mod hostile;
mod http;
pub mod mcp;
pub mod model;
pub mod outage;
pub mod python;
pub mod random;
pub mod reader;
pub mod responses;
mod search_attributes;
pub mod soak;
pub mod stack;
pub mod temporal;
mod validated;

pub use everturn_terminal::frames::{FollowedTurn, KnownFrame};

pub use everturn_test_servers::{
    ports, postgres, proxy, redis, round_trips, server, temporal_cluster, wait,
};
