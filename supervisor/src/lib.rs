//! Child processes that never outlive this process, not even when it is killed with kill -9.
//!
//! - [`ProcessGroup`]: a group of processes that is killed with this process: for a tool's program or an MCP server,
//!   whose input and output belong to the caller
//! - [`Program`]: a long-running program in such a group, without input: for a database or a Temporal server
//!
//! Signals are sent from Rust. What must work when this process is gone is `watcher.sh`, the only shell program here.
//! What a program is for, and what it says, is not known to this crate.

mod group;
mod program;

pub use group::{GroupEnd, ProcessGroup};
pub use nix::sys::signal::Signal;
pub use program::Program;
