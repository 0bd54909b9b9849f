//! The tables of tools. Each table adds its tools to the names that agents may refer to.
//!
//! - `http`: HTTP endpoints as tools, and `egress`, the addresses that tools may connect to
//! - `client`: tools that run at the client
//! - `remote`: tools that a worker of the operator's own runs
//! - `mcp`: MCP servers
//! - `skills`: folders of instructions
//! - `probe`: the tool that tells whether a call with an unknown outcome has happened
//! - `description`: the parts that all tables of single tools share

pub(super) mod client;
mod description;
pub(super) mod egress;
pub(super) mod http;
pub(super) mod mcp;
mod probe;
pub(super) mod remote;
pub(super) mod skills;

pub(super) use description::checked_schema;
