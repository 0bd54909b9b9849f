//! The activities of a turn: the work that the workflow decides on and may not do itself.
//!
//! - [`AgentActivities`]: the activities as the worker registers them; each has its own module (`load`, `think`,
//!   `run_tool`, `save`; `remote` has two)
//! - `find_tools`: the search in an agent's tools
//! - [`LeftOutTools`]: the tools that providers would refuse
//! - `files`: images and files in messages and in results of tools
//! - `probe`: the end of a call with an unknown outcome; `call_context`: the context of a call and of its probe
//! - `questions`: the questions of running tools to a person
//! - `attempt`, `store_call`: an attempt of an activity, and a call of the store
//! - `tool_calls`: the forms of a tool call, for calls of models (`think`) and of hooks (`hooks`)
//! - [`ToolThreads`]: the threads of tools, separate from the worker's threads
//! - [`Cancels`]: how attempts learn of a cancel at once
//! - `sync`: the lock of the contexts that `think` keeps
//!
//! Must not be here: decisions about the next action of a turn (`everturn-workflows`), SQL (`everturn-store`), the
//! clients of models (`everturn-models`) and the kinds of tools (`everturn-tools`).

mod after_turn;
mod agent_activities;
mod approval;
mod attempt;
mod call_context;
mod cancels;
mod elsewhere;
mod failure;
mod files;
mod find_tools;
mod hooks;
mod known_agents;
mod left_out;
mod load;
mod probe;
mod pulse;
mod questions;
mod readers;
mod remote;
mod run_tool;
mod save;
mod settings;
mod stopping;
mod storable;
mod store_call;
mod sync;
mod think;
mod tool_calls;
mod tool_progress;
mod tool_threads;

pub use agent_activities::{AgentActivities, Ports, ThisWorker};
pub use cancels::Cancels;
pub use known_agents::KnownAgents;
pub use left_out::LeftOutTools;
pub use probe::ProbeLimits;
pub use questions::QuestionLimits;
pub use settings::{Retries, Settings, TenantBudgets, TurnQueues};
pub use stopping::Stopping;
pub use tool_threads::ToolThreads;
