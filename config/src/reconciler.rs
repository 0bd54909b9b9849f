//! `[reconciler]`: how gateways find stalled turns.

use std::{num::NonZeroU32, time::Duration};

use everturn_gateway::config::{LostTurns, ReconcilerConfig};
use serde::Deserialize;
use toml::Spanned;

use super::checker::{Checker, HOUR};

/// The shortest duration, for tests.
const SHORTEST: Duration = Duration::from_millis(10);
const MAX_CALLS: u32 = 10_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReconcilerTable {
    every: Option<Spanned<String>>,
    grace: Option<Spanned<String>>,
    again: Option<Spanned<String>>,
    calls_per_second: Option<Spanned<u32>>,
    lost_turns: Option<LostTurnsWord>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LostTurnsWord {
    Resume,
    End,
}

impl ReconcilerTable {
    /// Returns the reconciler's configuration with this table's values.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> ReconcilerConfig {
        let default = ReconcilerConfig::default();
        let mut duration = |key, value: &Option<Spanned<String>>, default| {
            check.duration(key, value, default, SHORTEST..=HOUR)
        };
        let every = duration("every", &self.every, default.every);
        let grace = duration("grace", &self.grace, default.grace);
        let again = duration("again", &self.again, default.again);
        let calls = check.number(
            "calls_per_second",
            &self.calls_per_second,
            default.calls_per_second.get(),
            1..=MAX_CALLS,
        );
        ReconcilerConfig {
            every,
            grace,
            again,
            calls_per_second: NonZeroU32::new(calls).unwrap_or(default.calls_per_second),
            lost_turns: match self.lost_turns {
                Some(LostTurnsWord::Resume) => LostTurns::Resume,
                Some(LostTurnsWord::End) => LostTurns::End,
                None => default.lost_turns,
            },
        }
    }
}
