//! `[approvals]`: the ways by which an approval may be answered.

use everturn_proto::words::AnswersFrom;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ApprovalsTable {
    allow_signal: bool,
}

impl Default for ApprovalsTable {
    /// Allows answers by signal. A person with the right to signal a workflow may also end it, and has no other way to
    /// answer without a gateway.
    fn default() -> Self {
        Self { allow_signal: true }
    }
}

impl ApprovalsTable {
    pub(super) fn answers_from(&self) -> AnswersFrom {
        if self.allow_signal {
            AnswersFrom::Engine
        } else {
            AnswersFrom::Gateway
        }
    }
}
