//! The check that this worker has the provider and the tools that an agent needs, and the way on without a part that no
//! worker has any more. A turn keeps the definition of its beginning, so the configuration may have lost a part of it.

use std::collections::BTreeMap;

use everturn_models::ModelClient;
use everturn_proto::{turn::AgentDefinition, words::FailureCode};
use everturn_store::StepClaims;
use everturn_tools::ToolRegistry;
use temporalio_common::ActivityError;

use super::{claimed::Claimed, model_name::ModelName, pick::Pick};
use crate::{
    elsewhere::{Gone, Part, Peers, lacks_for},
    failure as fail,
};

/// The parts of this worker, and the other workers.
pub(super) struct Here<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) steps: &'a dyn StepClaims,
    pub(super) model: &'a dyn ModelClient,
    pub(super) tools: &'a ToolRegistry,
    /// The agents of the present configuration, by name.
    pub(super) agents: &'a BTreeMap<String, AgentDefinition>,
    pub(super) gone: &'a Gone,
    pub(super) peers: Peers,
}

impl Here<'_> {
    /// Leaves the call to another worker, and gives back the claim, when this worker lacks a part that the agent needs.
    /// After the waiting time, returns the parts that no worker has.
    pub(super) async fn check(&self, agent: &AgentDefinition) -> Result<Vec<Part>, ActivityError> {
        let (claimed, steps) = (self.claimed, self.steps);
        let agent_execution_id = &claimed.step.agent_execution_id;
        let missing = lacks_for(self.model, self.tools, agent);
        let is_awaited = |part: &&Part| !self.gone.has(agent_execution_id, part);
        let Some(awaited) = missing.iter().find(is_awaited).map(Part::to_string) else {
            return Ok(missing);
        };
        let ctx = claimed.attempt.ctx;
        if let Some(elsewhere) = self.peers.left_to_others(ctx, &awaited) {
            claimed
                .attempt
                .insist(|| steps.release_step(claimed.step, claimed.generation))
                .await?;
            return Err(elsewhere);
        }
        for part in &missing {
            if self.gone.note(agent_execution_id, part) {
                tracing::warn!(
                    conversation_id = claimed.step.conversation_id,
                    agent_execution_id,
                    agent = agent.name,
                    "the turn goes on without {part}, which was removed from the configuration"
                );
            }
        }
        Ok(missing)
    }

    /// Takes the parts that no worker has out of the picked definition: the model is offered the remaining tools, and
    /// another model answers for a removed provider. Fails when no model is left.
    pub(super) async fn fit(
        &self,
        pick: &mut Pick<'_>,
        tenant_id: &str,
    ) -> Result<(), ActivityError> {
        let missing = self.check(&pick.agent).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let has_provider = |provider: &str| self.model.has_provider(provider);
        if !has_provider(&pick.agent.provider) {
            let present = self.agents.get(&pick.own.name);
            let present = present.filter(|agent| agent.serves(tenant_id));
            let removed = ModelName::of(&pick.agent);
            if !pick.replace_model(present, has_provider) {
                return Err(no_model(&pick.own.name, &removed));
            }
        }
        let tools = &mut pick.agent.to_mut().tools;
        tools.retain(|tool| !missing.contains(&Part::Tool(tool.name.clone())));
        Ok(())
    }
}

/// Makes the failure of a turn whose definition has no model with a configured provider.
fn no_model(agent: &str, removed: &ModelName) -> ActivityError {
    fail::permanent(
        FailureCode::ModelNotConfigured,
        format!(
            "The configuration no longer has the provider of the model `{removed}`, and the agent `{agent}` has no \
             other model. Send the message again when the agent has a model."
        ),
    )
}
