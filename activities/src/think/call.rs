//! A claimed call of the model.

use super::{budget::Budget, claimed::Claimed, thinker::Thinker};

/// A claimed call of the model.
pub(super) struct ModelCall<'a> {
    pub(super) thinker: &'a Thinker,
    pub(super) claimed: &'a Claimed<'a>,
    /// The conversation's tenant.
    pub(super) tenant_id: &'a str,
    /// True when the turn has a budget, of which the call reserves a part.
    pub(super) has_budget: bool,
    /// True when the agent's steps are used up, and the model writes the last summary.
    pub(super) at_step_limit: bool,
}

impl ModelCall<'_> {
    /// Returns the budget of the call.
    pub(super) fn budget(&self) -> Budget<'_> {
        Budget {
            claimed: self.claimed,
            turns: &*self.thinker.turns,
            has_budget: self.has_budget,
        }
    }
}
