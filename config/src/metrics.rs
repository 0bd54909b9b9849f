//! `[metrics]`: the limit of the names in labels.

use serde::Deserialize;

use super::{
    checker::Checker,
    forms::{Number, Written},
};

/// Four times fifty agents. A process with two hundred agents of five tools has some ten thousand series, which
/// Prometheus reads in a scrape without effort.
const MAX_NAMES: usize = 200;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MetricsTable {
    max_names: Option<Written<Number<1, 10_000, usize>>>,
}

impl MetricsTable {
    /// Returns the most agents, and the most tools, with a label of their own.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> usize {
        check.value_or(&self.max_names, MAX_NAMES)
    }
}
