//! `[audit]`: how long audit entries are kept.

use everturn_gateway::AuditConfig;
use serde::Deserialize;

use super::{
    checker::Checker,
    forms::{Number, Written},
};

/// At least one day, so that an operator can read an entry before it is removed; at most a century.
type KeepDays = Number<1, 36_500>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuditTable {
    keep_days: Option<Written<KeepDays>>,
}

impl AuditTable {
    pub(super) fn check(&self, check: &mut Checker<'_>) -> AuditConfig {
        let default = AuditConfig::default();
        AuditConfig {
            keep_days: check.value_or(&self.keep_days, default.keep_days),
            ..default
        }
    }
}
