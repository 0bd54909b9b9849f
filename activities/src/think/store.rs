//! The last stage: the step's checkpoint is stored (invariant 5, paid once).

use everturn_proto::{turn::LlmCompleteState, words::FailureCode};
use everturn_store::{CompletedStep, StepClaims};
use temporalio_common::ActivityError;

use super::{calls, claimed::Claimed};
use crate::failure as fail;

/// Stores the checkpoint of a step.
pub(super) struct Store<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) steps: &'a dyn StepClaims,
}

impl Store<'_> {
    /// Stores the checkpoint of a reply, and returns the stored checkpoint.
    pub(super) async fn run(
        &self,
        mut state: LlmCompleteState,
    ) -> Result<LlmCompleteState, ActivityError> {
        let Claimed { attempt, step, .. } = *self.claimed;
        loop {
            let completed = attempt
                .insist(|| self.steps.complete_step(step, state.clone()))
                .await?;
            match completed {
                CompletedStep::Stored(stored) => return Ok(stored),
                CompletedStep::CallIdsUsed(used) => {
                    if !calls::rename(&mut state.tool_calls, &used) {
                        let message =
                            format!("The conversation has other calls with the ids {used:?}.");
                        return Err(fail::permanent(FailureCode::Internal, message));
                    }
                }
            }
        }
    }
}
