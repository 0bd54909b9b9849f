//! The activities of a turn: everything the workflow decides on and may not do itself.
//!
//! - [`agent_activities`]: the four activities as the worker registers them
//! - [`model`]: the port to language models and its adapter
//! - [`tools`]: the port to tools, their registry, and the built-in ones
//! - [`failpoint`]: places where a test can stop the process
//!
//! Must not be here: decisions about what happens next in a turn (`everturn-workflows`), SQL
//! (`everturn-store`), HTTP servers.

pub mod agent_activities;
pub mod failpoint;
pub mod model;
pub mod tools;

pub use agent_activities::AgentActivities;
