//! The metrics of Everturn: each has its name, its meaning and its labels here, and a function that records it. And the
//! spans of its traces, as far as those need them who do a part of a turn.
//!
//! - `metric`: [`Metric`], what a metric is
//! - [`turns`]: turns, the calls of models and tools that they make, and what their saves cost
//! - [`gateway`]: requests, readers, and turns that were put right
//! - [`process`]: what every process says of itself
//! - [`trace`]: the span that one is in
//!
//! No metric is recorded in a process that serves no `/metrics` ([`switch_on`]). Labels are words of a fixed list or
//! names of the configuration, never ids, so that a process has some hundred series however much it does.
//!
//! Must not be here: how metrics are served (`worker/src/telemetry/`), and what decides anything by them.

pub mod gateway;
mod metric;
pub mod process;
pub mod trace;
pub mod turns;

pub use metric::{Kind, Metric, switch_on};

/// All metrics that Everturn records itself. The SDK of Temporal adds its own, which begin with `temporal_`.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [turns::ALL, gateway::ALL, process::ALL]
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
            let is_counter = matches!(metric.kind, Kind::Counter);
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
