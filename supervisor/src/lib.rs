//! Child processes that end together with their parent, even after kill -9, and the signals that end the parent.
//!
//! - [`ProcessGroup`]: a group of processes that dies with its parent: for a tool's program or an MCP server. The
//!   caller owns input and output
//! - [`Program`]: a long-running program in its own group, without input: a database or a Temporal server
//! - [`shutdown`]: the signals that ask this process itself to stop
//! - [`launch`]: programs of an operator's configuration, with fewer rights than this process
//! - [`failpoint`]: code points at which a test can stop this process
//!
//! Rust code sends the signals. `watcher.sh`, the only shell program here, cleans up after the end of this process.
//! Must not be here: a program's purpose, and its output.

pub mod failpoint;
mod group;
pub mod launch;
mod program;
pub mod shutdown;

pub use group::{GroupEnd, ProcessGroup};
pub use nix::sys::signal::Signal;
pub use program::Program;
