//! `[egress]`: the addresses that tools may connect to.

use everturn_tools::egress::EgressPolicy;
use serde::Deserialize;
use toml::Spanned;

use crate::checker::Checker;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EgressTable {
    allow: Vec<Spanned<String>>,
}

impl EgressTable {
    pub(crate) fn check(&self, check: &mut Checker<'_>) -> EgressPolicy {
        let mut policy = EgressPolicy::default();
        for entry in &self.allow {
            let text = entry.get_ref();
            if let Err(reason) = policy.allow(text) {
                check.wrong(entry, format!("`{text}` cannot be allowed: {reason}"));
            }
        }
        policy
    }
}
