//! The binary `everturn` as a library, for binaries with tools of their own and for tests. Every role gets its
//! connections as arguments.
//!
//! - [`App`]: the whole binary, with tools of one's own; [`TypedTool`] is what they implement
//! - [`cli`]: the command line
//! - `audit`: what operators and processes leave in the audit trail
//! - [`logging`]: what is written to standard error
//! - [`config`]: the file `everturn.toml`, read and checked
//! - [`connections`]: Temporal and the store, waited for with back-off
//! - [`environment`]: the secrets of the environment, kept from other processes
//! - [`roles`]: what a process can be: worker, gateway, and the commands of operators
//! - [`telemetry`]: health and metrics of a process
//! - [`transport`]: what must not leave this machine without TLS, and certificates that are replaced
//! - [`version`]: the version of this build
//! - [`dev`]: everything in one process, with the Temporal dev server as a child
//! - [`demo`]: the demo model, for a start without a provider's key
//! - [`frames`]: what this release knows of the frames that a client of the gateway gets
//! - [`chat`], [`tail`], [`waterfall`], [`show`]: the terminal
//!
//! Must not be here: state that a second gateway or worker would not have.

mod app;
mod audit;
pub mod chat;
pub mod cli;
pub mod config;
pub mod connections;
pub mod demo;
pub mod dev;
pub mod environment;
pub mod frames;
pub mod logging;
pub mod roles;
pub mod show;
pub mod shutdown;
pub mod tail;
pub mod telemetry;
pub mod transport;
pub mod version;
pub mod waterfall;

pub use app::App;
pub use everturn_activities::tools::{
    Effect, Tool, ToolContext, ToolError, TypedTool, content, process,
};
pub use everturn_proto::words::EventType;
