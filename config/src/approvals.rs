//! `[approvals]`: the ways by which an approval may be answered.

use everturn_proto::words::AnswersFrom;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ApprovalsTable {
    /// False by default: the engine does not know who sends a signal, and every program that reaches the engine can
    /// send one in any tenant.
    allow_signal: bool,
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
