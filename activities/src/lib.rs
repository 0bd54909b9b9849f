//! The activities of a turn: the work that the workflow decides on and may not do itself.
//!
//! - [`AgentActivities`]: the activities as the worker registers them; each has its own module (`load`, `think`,
//!   `run_tool`, `save`; `remote` has two)
//! - [`model`]: the port to language models and its adapters
//! - [`tools`]: the port to tools, their registry, and the built-in tools
//! - [`KnownFiles`], `files`: images and files in messages and in results of tools
//! - [`egress`]: the addresses to which tools may connect
//! - [`ToolThreads`]: the threads of tools, separate from the worker's threads
//! - [`Cancels`]: how attempts learn of a cancel at once
//! - [`failpoint`]: code points at which a test can stop the process
//!
//! Must not be here: decisions about the next action of a turn (`everturn-workflows`), SQL (`everturn-store`), HTTP
//! servers.

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
