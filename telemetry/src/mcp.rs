//! Metrics of connections to MCP servers. The calls are among the tool executions ([`crate::turns`]).

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use crate::metric::Metric;

const CONNECTIONS: Metric = Metric::gauge(
    "everturn_mcp_connections",
    "The open connections to an MCP server, by server.",
    &["server"],
);
const CONNECTS: Metric = Metric::counter(
    "everturn_mcp_connects_total",
    "The tries to connect to an MCP server, by server and by the `result`: `connected` or `failed`.",
    &["server", "result"],
);

pub(crate) const ALL: &[&Metric] = &[&CONNECTIONS, &CONNECTS];

/// The open connections by server.
static OPEN: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Records a try to connect.
pub fn connected(server: &str, is_connected: bool) {
    let result = if is_connected { "connected" } else { "failed" };
    CONNECTS.add(1, &[server, result]);
    change(server, |open| open + usize::from(is_connected));
}

/// Records the end of a connection.
pub fn ended(server: &str) {
    change(server, |open| open.saturating_sub(1));
}

fn change(server: &str, change: impl Fn(usize) -> usize) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let number = open.entry(server.to_owned()).or_default();
    *number = change(*number);
    CONNECTIONS.set(*number, &[server]);
}
