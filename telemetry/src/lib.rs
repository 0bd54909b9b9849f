//! The metrics of Everturn: a metric has its name, meaning, labels and recording function here. The crate also has the spans
//! that callers within a turn need.
//!
//! - `metric`: [`Metric`], the type of a metric
//! - [`turns`]: turns, their calls of models and tools, and the time of their saves
//! - [`mcp`]: connections to MCP servers
//! - [`gateway`]: requests, readers, and stalled turns
//! - [`process`]: metrics of every process
//! - [`names`]: the configured agents and tools, which labels may name, and the owners of the agents
//! - [`trace`]: the current span
//!
//! A process without `/metrics` records nothing ([`switch_on`]). Labels are words of a fixed list or names of the
//! configuration, never ids, so the load does not decide the number of series.
//!
//! Must not be here: how metrics are served, and ports with metrics or spans around them (`worker/src/telemetry/`). The
//! crates of some ports depend on this crate. Decisions never depend on metrics.

pub mod gateway;
pub mod mcp;
mod metric;
pub mod names;
pub mod process;
pub mod trace;
pub mod turns;

pub use metric::{Kind, Metric, switch_on};

/// Returns the metrics of Everturn. Temporal's SDK adds metrics with names that begin with `temporal_`.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [turns::ALL, mcp::ALL, gateway::ALL, process::ALL, names::ALL]
        .into_iter()
        .flatten()
        .copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_as_prometheus_wants_them() {
        for metric in all() {
            let name = metric.name;
            assert!(name.starts_with("everturn_"), "{name}");
            let is_counter = matches!(metric.kind, Kind::Counter | Kind::Amount);
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(metric.help.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn each_name_stands_for_one_metric() {
        let names: BTreeSet<_> = all().map(|metric| metric.name).collect();
        assert_eq!(names.len(), all().count());
    }
}
