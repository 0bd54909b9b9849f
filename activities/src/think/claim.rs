//! The claim of a step. The store answers with the step's checkpoint, or with the generation for a call.

use everturn_store::{ClaimedCall, StepClaim, StepClaims, StepKey, WorkerId};
use temporalio_common::ActivityError;

use crate::{attempt::Attempt, failure as fail};

/// The claim of a step by a worker.
pub(super) struct Claim<'a> {
    pub(super) attempt: &'a Attempt<'a>,
    pub(super) step: &'a StepKey,
    pub(super) steps: &'a dyn StepClaims,
    pub(super) worker: &'a WorkerId,
}

impl Claim<'_> {
    /// Claims the step. Fails after too many calls of the step, or when the store lacks the steps before.
    pub(super) async fn run(&self) -> Result<StepClaim, ActivityError> {
        let worker = Some(self.worker);
        let claim = self
            .attempt
            .insist(|| self.steps.claim_step(self.step, worker))
            .await?;
        let (failure, generation) = match claim {
            StepClaim::Call(ClaimedCall {
                is_ahead: true,
                generation,
                ..
            }) => (fail::store_behind(), generation),
            StepClaim::Call(call) if call.calls > fail::STEP_CALLS => {
                (fail::called_too_often(), call.generation)
            }
            claim => return Ok(claim),
        };
        self.attempt
            .insist(|| self.steps.release_step(self.step, generation))
            .await?;
        Err(failure)
    }
}
