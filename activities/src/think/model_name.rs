//! The name of an agent's model, and the name of a model in a chain.

use everturn_models::signer;
use everturn_proto::{turn::AgentDefinition, words::FailureCode};
use temporalio_common::ActivityError;

use crate::failure as fail;

/// A model, by the provider in the configuration and the provider's name for the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ModelName {
    pub(super) provider: String,
    pub(super) model: String,
}

impl ModelName {
    /// Returns the name of the agent's model.
    pub(super) fn of(agent: &AgentDefinition) -> Self {
        Self {
            provider: agent.provider.clone(),
            model: agent.model.clone().unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&signer(&self.provider, &self.model))
    }
}

/// Returns the provider's name for the agent's model. A turn of an agent without a model has ended before its first
/// step.
pub(super) fn model_of(agent: &AgentDefinition, agent_hash: &str) -> Result<String, ActivityError> {
    agent.model.clone().ok_or_else(|| {
        fail::permanent(
            FailureCode::Internal,
            format!("The agent definition {agent_hash} has no model."),
        )
    })
}
