//! Child processes that end with this process, also when it is killed with kill -9.
//!
//! - [`ProcessGroup`]: a group of processes that is killed with this process: for a tool's program or an MCP server,
//!   whose input and output belong to the caller
//! - [`Program`]: a long-running program in such a group, without input: for a database or a Temporal server
//! - [`launch`]: programs of an operator's configuration, which get less than this process has
//!
//! Signals are sent from Rust. `watcher.sh`, the only shell program here, does what must be done when this process is
//! gone. Must not be here: what a program is for, and what it writes.

mod group;
pub mod launch;
mod program;

pub use group::{GroupEnd, ProcessGroup};
pub use nix::sys::signal::Signal;
pub use program::Program;
