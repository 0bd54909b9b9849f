//! `[reconciler]`: how gateways find stalled turns.

use std::num::NonZeroU32;

use everturn_gateway::config::{LostTurns, ReconcilerConfig};
use serde::Deserialize;

use super::{
    checker::Checker,
    forms::{HOUR, Number, OneOf, Time, Words, Written},
};

/// The shortest duration is for tests.
type Wait = Time<10, HOUR>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReconcilerTable {
    every: Option<Written<Wait>>,
    grace: Option<Written<Wait>>,
    again: Option<Written<Wait>>,
    calls_per_second: Option<Written<Number<1, 10_000, NonZeroU32>>>,
    list_size: Option<Written<Number<1, 1_000, NonZeroU32>>>,
    lists_per_second: Option<Written<Number<1, 1_000, NonZeroU32>>>,
    stuck_attempts: Option<Written<Number<2, 1_000, NonZeroU32>>>,
    stuck_after: Option<Written<Wait>>,
    lost_turns: Option<Written<OneOf<LostTurns>>>,
}

impl Words for LostTurns {
    const WORDS: &'static [(&'static str, Self)] = &[("resume", Self::Resume), ("end", Self::End)];
}

impl ReconcilerTable {
    /// Returns the reconciler's configuration with this table's values.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> ReconcilerConfig {
        let default = ReconcilerConfig::default();
        ReconcilerConfig {
            every: check.value_or(&self.every, default.every),
            grace: check.value_or(&self.grace, default.grace),
            again: check.value_or(&self.again, default.again),
            calls_per_second: check.value_or(&self.calls_per_second, default.calls_per_second),
            list_size: check.value_or(&self.list_size, default.list_size),
            lists_per_second: check.value_or(&self.lists_per_second, default.lists_per_second),
            stuck_attempts: check.value_or(&self.stuck_attempts, default.stuck_attempts),
            stuck_after: check.value_or(&self.stuck_after, default.stuck_after),
            lost_turns: check.value_or(&self.lost_turns, default.lost_turns),
        }
    }
}
