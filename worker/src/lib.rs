//! The binary `everturn` as a library, for tests and for binaries with user-defined tools. Every role gets its
//! connections as arguments.
//!
//! - [`App`]: the whole binary with user-defined tools, which implement [`TypedTool`]
//! - [`cli`]: the command line
//! - `audit`: audit entries about the actions of operators and processes
//! - [`logging`]: the log on standard error
//! - [`connections`]: connects to Temporal and the store, with back-off
//! - `consents`: consents of people to the use of MCP servers in their names
//! - `own_ports`: the ports of Everturn's own servers, which programs of tools may not reach
//! - [`environment`]: the secrets of the environment, hidden from other processes
//! - [`reload`]: changed agents while a process runs
//! - [`roles`]: the roles of a process: worker, gateway, and the commands of operators
//! - [`telemetry`]: health and metrics of a process
//! - [`transport`]: which connections need TLS, and the renewal of certificates
//! - [`version`]: the version of this build
//! - [`dev`]: everything in one process, with the Temporal dev server as a child
//! - [`demo`]: the demo model, for a start without a provider's key
//!
//! Must not be here: state that a second gateway or worker would not have.

mod app;
mod audit;
pub mod cli;
pub mod connections;
mod consents;
pub mod demo;
pub mod dev;
pub mod environment;
pub mod logging;
mod own_ports;
pub mod reload;
pub mod roles;
mod shell;
pub mod telemetry;
pub mod transport;
pub mod version;

pub use app::App;
pub use everturn_proto::words::EventType;
pub use everturn_tools::{Effect, Tool, ToolContext, ToolError, TypedTool, content, process};
