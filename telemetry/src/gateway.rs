//! Metrics of gateways: requests, readers, and stalled turns.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    metric::{Metric, SHORT},
    names,
};

/// Upper bounds for a number of events.
const EVENTS: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0];

const REQUESTS: Metric = Metric::counter(
    "everturn_http_requests_total",
    "Answered requests, by the path in the API document.",
    &["method", "path", "status"],
);
const REQUEST_SECONDS: Metric = Metric::histogram(
    "everturn_http_request_seconds",
    "The time to the head of an answer; streams go on afterwards.",
    &["method", "path"],
    SHORT,
);
const STREAMS: Metric = Metric::gauge("everturn_streams_open", "Open streams of events.", &[]);
const TAILS: Metric = Metric::gauge(
    "everturn_live_tails",
    "Conversations with live readers.",
    &[],
);
const STREAM_LAG: Metric = Metric::histogram(
    "everturn_stream_lag_events",
    "The number of events that a reader had missed before connecting.",
    &[],
    EVENTS,
);
const STREAMS_CUT: Metric = Metric::counter(
    "everturn_streams_cut_total",
    "Streams that ended without a request to end, by the reason.",
    &["reason"],
);
const MEMORY_HELD: Metric = Metric::gauge(
    "everturn_memory_held_bytes",
    "Bytes held in memory for tenants: frames, pages, bodies of requests and answers.",
    &[],
);
const OVER_MEMORY: Metric = Metric::counter(
    "everturn_over_memory_total",
    "Waits because a tenant held more than the tenant's share of memory: every `reader` sent back to the store, and \
     every refused `request`.",
    &["what"],
);
const CONNECTIONS_REFUSED: Metric = Metric::counter(
    "everturn_connections_refused_total",
    "Connections closed before an answer because of a limit, by the reason.",
    &["reason"],
);
const RECONCILED: Metric = Metric::counter(
    "everturn_reconciler_total",
    "Actions of the reconciler: conversations `checked`, messages and cancels `signalled` again, workflows `started` \
     again, turns ended as `failed`, workflows seen `stuck`.",
    &["did"],
);
const APPROVALS_WAITING: Metric = Metric::gauge(
    "everturn_approvals_waiting",
    "Tool calls that wait for a person's approval, by agent. Every gateway counts the calls of all tenants.",
    &["agent"],
);
const APPROVALS_OLDEST: Metric = Metric::gauge(
    "everturn_approvals_oldest_seconds",
    "The time for which the oldest tool call has waited for an approval, by agent.",
    &["agent"],
);
const CHECKS_DUE: Metric = Metric::gauge(
    "everturn_reconciler_due",
    "Conversations whose check by the reconciler is due. Every gateway counts all conversations.",
    &[],
);
const CHECKS_OVERDUE: Metric = Metric::gauge(
    "everturn_reconciler_overdue_seconds",
    "The time for which the oldest check of the reconciler has been due.",
    &[],
);
const LOST_WORKERS: Metric = Metric::counter(
    "everturn_lost_workers_total",
    "Dead workers that the gateway has found and handled.",
    &[],
);
const RESTARTED: Metric = Metric::counter(
    "everturn_restarted_activities_total",
    "Activities that begin again because the worker is dead, or was stopping when the activity came.",
    &[],
);

pub(crate) const ALL: &[&Metric] = &[
    &REQUESTS,
    &REQUEST_SECONDS,
    &STREAMS,
    &TAILS,
    &STREAM_LAG,
    &STREAMS_CUT,
    &MEMORY_HELD,
    &OVER_MEMORY,
    &CONNECTIONS_REFUSED,
    &RECONCILED,
    &APPROVALS_WAITING,
    &APPROVALS_OLDEST,
    &CHECKS_DUE,
    &CHECKS_OVERDUE,
    &LOST_WORKERS,
    &RESTARTED,
];

/// Records the answer to a request. `path` is the route, with the names of parameters in place of values.
pub fn answered(method: &str, path: &str, status: &str, took: Duration) {
    REQUESTS.add(1, &[method, path, status]);
    REQUEST_SECONDS.took(took, &[method, path]);
}

/// Records the number of open streams.
pub fn open_streams(open: usize) {
    STREAMS.set(open, &[]);
}

/// Records the number of conversations with a live reader.
pub fn tails(running: usize) {
    TAILS.set(running, &[]);
}

/// Records a new reader, with the number of events since the reader's cursor.
pub fn connected(missed: u32) {
    STREAM_LAG.observe(f64::from(missed), &[]);
}

/// Records a stream that the gateway cut.
pub fn cut(reason: &'static str) {
    STREAMS_CUT.add(1, &[reason]);
}

/// Records the bytes in memory for tenants.
pub fn memory_held(bytes: usize) {
    MEMORY_HELD.set(bytes, &[]);
}

/// Records a `reader` that went back to the store, or a refused `request`, because the tenant was over its memory share.
pub fn over_memory(what: &'static str) {
    OVER_MEMORY.add(1, &[what]);
}

/// Records a connection that a limit closed: every slot was taken (`full`), the client's address had its full number of
/// connections (`address`), or the connection had the longest wait for a request when a new connection came (`idle`).
pub fn refused_connection(reason: &'static str) {
    CONNECTIONS_REFUSED.add(1, &[reason]);
}

/// Records the actions of the reconciler since the start of the process.
pub fn reconciled(did: &'static str, total: u64) {
    RECONCILED.set_total(total, &[did]);
}

/// The tool calls of an agent that wait for approvals.
#[derive(Debug, Clone, Copy)]
pub struct WaitingApprovals<'a> {
    /// The agent.
    pub agent: &'a str,
    /// Number of calls.
    pub calls: u32,
    /// The time for which the oldest call has waited.
    pub oldest: Duration,
}

/// Records the calls that wait for approvals, of every agent. An agent without a waiting call gets 0.
pub fn approvals_waiting<'a>(waiting: impl Iterator<Item = WaitingApprovals<'a>>) {
    let mut by_label: BTreeMap<String, (usize, u64)> =
        names::agents().map(|label| (label, (0, 0))).collect();
    for WaitingApprovals {
        agent,
        calls,
        oldest,
    } in waiting
    {
        let (sum, longest) = by_label.entry(names::agent(agent)).or_default();
        *sum += calls as usize;
        *longest = (*longest).max(oldest.as_secs());
    }
    for (label, (calls, oldest)) in by_label {
        APPROVALS_WAITING.set(calls, &[&label]);
        APPROVALS_OLDEST.set(usize::try_from(oldest).unwrap_or(usize::MAX), &[&label]);
    }
}

/// Records the due checks of the reconciler, and for how long the oldest check has been due.
pub fn checks_due(due: u32, overdue: Duration) {
    CHECKS_DUE.set(due as usize, &[]);
    let overdue = usize::try_from(overdue.as_secs()).unwrap_or(usize::MAX);
    CHECKS_OVERDUE.set(overdue, &[]);
}

/// Records the dead workers, and their restarted activities, since the start of the process.
pub fn lost_workers(workers: u64, activities: u64) {
    LOST_WORKERS.set_total(workers, &[]);
    RESTARTED.set_total(activities, &[]);
}
