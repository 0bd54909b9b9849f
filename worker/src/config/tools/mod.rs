//! The tables of tools. Each adds its names to those that agents may use.
//!
//! - `http`: endpoints as tools, and `egress`, where they may connect to
//! - `client`: tools that run at the client
//! - `remote`: tools that a worker of the operator's own runs
//! - `mcp`: MCP servers
//! - `skills`: folders of instructions
//! - `description`: what the tables of single tools have in common

pub(super) mod client;
mod description;
pub(super) mod egress;
pub(super) mod http;
pub(super) mod mcp;
pub(super) mod remote;
pub(super) mod skills;
