//! `[reload]`: whether and how often a running process looks at the files of agents.

use std::time::Duration;

use serde::Deserialize;

use super::{
    checker::Checker,
    forms::{HOUR, Time, Written},
};

/// The shortest time is for tests.
type Interval = Time<100, HOUR>;
/// An author waits for some seconds at the most, and reading some hundred KB every five seconds costs next to nothing.
/// Kubernetes itself brings a changed ConfigMap into a pod within a minute or two.
const INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReloadTable {
    enabled: Option<bool>,
    interval: Option<Written<Interval>>,
}

impl ReloadTable {
    /// Returns the time between two looks; `None` if changes need a restart.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> Option<Duration> {
        let interval = check.value_or(&self.interval, INTERVAL);
        self.enabled.unwrap_or(true).then_some(interval)
    }
}
