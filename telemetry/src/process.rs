//! Metrics of every process.

use crate::metric::Metric;

const BUILD: Metric = Metric::gauge(
    "everturn_build",
    "1, with the version and the role of the process.",
    &["version", "role"],
);
const CONNECTIONS: Metric = Metric::gauge(
    "everturn_database_connections",
    "Connections of the pool to the database: `idle`, `busy`, and the greatest allowed number (`limit`).",
    &["state"],
);
const STREAM_ERRORS: Metric = Metric::counter(
    "everturn_stream_errors_total",
    "Texts and announcements that Redis did not take, by whether Redis was `away`. Readers get the data from the store.",
    &["kind"],
);

const RELOADS: Metric = Metric::counter(
    "everturn_reloads_total",
    "Changes of the files of agents, by whether the process has `applied` or `refused` the change.",
    &["result"],
);

const REFUSED: Metric = Metric::gauge(
    "everturn_reload_refused",
    "1 while the process refuses the present files of agents and goes on with earlier agents, otherwise 0.",
    &[],
);

pub(crate) const ALL: &[&Metric] = &[&BUILD, &CONNECTIONS, &STREAM_ERRORS, &RELOADS, &REFUSED];

/// Records the version and the role of the process.
pub fn started(version: &str, role: &str) {
    BUILD.set(1, &[version, role]);
}

/// Records the state of the pool of database connections.
pub fn connections(idle: usize, busy: usize, limit: usize) {
    CONNECTIONS.set(idle, &["idle"]);
    CONNECTIONS.set(busy, &["busy"]);
    CONNECTIONS.set(limit, &["limit"]);
}

/// Records a failed call of the stream.
pub fn stream_failed(is_away: bool) {
    let kind = if is_away { "away" } else { "other" };
    STREAM_ERRORS.add(1, &[kind]);
}

/// Records whether the process refuses the present files of agents.
pub fn reload_refused(is_refused: bool) {
    REFUSED.set(usize::from(is_refused), &[]);
}

/// Records a change of the files of agents.
pub fn reloaded(is_applied: bool) {
    let result = if is_applied { "applied" } else { "refused" };
    RELOADS.add(1, &[result]);
}
