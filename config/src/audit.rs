//! `[audit]`: how long audit entries are kept.

use std::ops::RangeInclusive;

use everturn_gateway::AuditConfig;
use serde::Deserialize;
use toml::Spanned;

use super::checker::Checker;

/// The allowed days. At least one day, so that an operator can read an entry before it is removed; at most a century.
const KEEP_DAYS: RangeInclusive<u32> = 1..=36_500;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuditTable {
    keep_days: Option<Spanned<u32>>,
}

impl AuditTable {
    pub(super) fn check(&self, check: &mut Checker<'_>) -> AuditConfig {
        let default = AuditConfig::default();
        let days = default.keep_days;
        AuditConfig {
            keep_days: check.number("keep_days", &self.keep_days, days, KEEP_DAYS),
            ..default
        }
    }
}
