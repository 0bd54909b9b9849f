//! The activities of a turn: everything the workflow decides on and may not do itself.
//!
//! - [`AgentActivities`]: the activities as the worker registers them; each has a module of its own
//!   (`load`, `think`, `run_tool`, `save`; `remote` has two)
//! - [`model`]: the port to language models and its adapter
//! - [`tools`]: the port to tools, their registry, and the built-in ones
//! - [`KnownFiles`], `files`: images and files in messages and in results of tools
//! - [`egress`]: where tools may connect to
//! - [`ToolThreads`]: where tools run, apart from the worker
//! - [`Cancels`]: how attempts hear of a cancel at once
//! - [`failpoint`]: places where a test can stop the process
//!
//! Must not be here: decisions about what happens next in a turn (`everturn-workflows`), SQL
//! (`everturn-store`), HTTP servers.

mod after_turn;
mod agent_activities;
mod approval;
mod attempt;
mod cancels;
pub mod egress;
mod elsewhere;
pub mod failpoint;
mod failure;
mod files;
mod hooks;
mod known_agents;
mod load;
pub mod model;
mod remote;
mod retry_after;
mod run_tool;
mod save;
mod secrets;
mod stopping;
mod think;
mod tool_threads;
pub mod tools;

pub use agent_activities::{AgentActivities, TenantBudgets, TurnQueues};
pub use cancels::Cancels;
pub use files::KnownFiles;
pub use known_agents::KnownAgents;
pub use stopping::Stopping;
pub use think::{Circuits, KnownContexts, Measures};
pub use tool_threads::ToolThreads;
