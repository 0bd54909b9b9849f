//! The definition of an agent that nobody here knows, and agents that some tenants do not have.

use crate::turn::AgentDefinition;

impl AgentDefinition {
    /// Makes the definition that a turn is pinned to when all that is known of its agent is the name: without a model.
    pub fn only_a_name(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// True for [`AgentDefinition::only_a_name`]. No agent of a configuration is without a model.
    pub fn is_only_a_name(&self) -> bool {
        self.model.is_none()
    }

    /// True when conversations of this tenant may use the agent.
    pub fn serves(&self, tenant_id: &str) -> bool {
        self.tenants.is_empty() || self.tenants.iter().any(|tenant| tenant == tenant_id)
    }
}
