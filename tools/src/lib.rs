//! The port to tools, the registry that finds tools and checks arguments, and the kinds of tools.
//!
//! - [`Tool`]: the port; [`ToolContext`], [`ToolError`]: its context and its failure
//! - [`names`]: valid names of tools
//! - `checked`: a tool with a checked name and schema, which checks arguments
//! - `registry`: the worker's own tools, and sources of changing tools
//! - `caller`: the caller of a tool, in the format of each kind of tool
//! - `progress`: the progress of a call; `events`: events that a call adds to the turn
//! - [`Question`]: a question of a running tool to a person, and the [`Answer`]
//! - [`PersonConsents`]: consents of people in the store, for tools that act in their names
//! - [`builtin`]: the tools of every worker
//! - `described`: tools that run at the client or at other workers
//! - `delegate`: the tool that starts sub-agents
//! - [`http`]: endpoints described in the configuration
//! - [`mcp`]: tools of MCP servers
//! - [`skills`]: folders of instructions
//! - [`TypedTool`]: tools in Rust, with a typed input
//! - [`egress`]: the addresses to which tools may connect
//! - [`content`], [`process`]: for tools that return bytes or run programs; `excerpt`: for long texts
//!
//! Must not be here: a tool execution as a part of a turn, with its claim, deadline and record (`everturn-activities`).

pub mod builtin;
mod caller;
mod checked;
mod consents;
pub mod content;
mod context;
pub mod delegate;
mod described;
pub mod egress;
mod error;
mod events;
mod excerpt;
pub mod http;
pub mod mcp;
pub mod names;
pub mod process;
mod progress;
mod question;
mod registry;
pub mod skills;
#[cfg(test)]
mod testing;
mod tool;
mod typed;
mod wait;

pub use everturn_proto::words::Effect;

pub use checked::{CheckedTool, RegisterError};
pub use consents::{ConsentStoreError, PersonConsents, Sealer};
pub use context::{Asker, ToolContext};
pub use described::{DescribedTool, RunBy};
pub use error::ToolError;
pub use events::ToolEvents;
pub use progress::{LogLine, Progress, ProgressStep, Reports};
pub use question::{Answer, Answered, Form, Question};
pub use registry::{ToolRegistry, ToolSet, ToolSource, UnknownTool};
pub use tool::{Tool, ToolOrigin, ToolSpec};
pub use typed::{TypedTool, typed};
pub use wait::Wait;
