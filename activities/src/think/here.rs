//! The check that this worker has the provider and the tools that an agent needs.

use everturn_models::ModelClient;
use everturn_proto::turn::AgentDefinition;
use everturn_store::StepClaims;
use everturn_tools::ToolRegistry;
use temporalio_common::ActivityError;

use super::claimed::Claimed;
use crate::elsewhere::{Peers, lacks_for};

/// The parts of this worker, and the other workers.
pub(super) struct Here<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) steps: &'a dyn StepClaims,
    pub(super) model: &'a dyn ModelClient,
    pub(super) tools: &'a ToolRegistry,
    pub(super) peers: Peers,
}

impl Here<'_> {
    /// Leaves the call to another worker, and gives back the claim, when this worker lacks a part that the agent needs.
    pub(super) async fn check(&self, agent: &AgentDefinition) -> Result<(), ActivityError> {
        let (claimed, steps) = (self.claimed, self.steps);
        let ctx = claimed.attempt.ctx;
        let missing = lacks_for(self.model, self.tools, agent);
        let Some(elsewhere) = missing.and_then(|it| self.peers.left_to_others(ctx, &it)) else {
            return Ok(());
        };
        claimed
            .attempt
            .insist(|| steps.release_step(claimed.step, claimed.generation))
            .await?;
        Err(elsewhere)
    }
}
