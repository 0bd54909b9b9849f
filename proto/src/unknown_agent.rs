//! The definition of an agent with only a name, and the tenants that may use an agent.

use crate::turn::AgentDefinition;

impl AgentDefinition {
    /// Makes a definition without a model. A turn is pinned to the definition when only the agent's name is known.
    pub fn only_a_name(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// True for [`AgentDefinition::only_a_name`]. Every agent of a configuration has a model.
    pub fn is_only_a_name(&self) -> bool {
        self.model.is_none()
    }

    /// True when conversations of the tenant may use the agent.
    pub fn serves(&self, tenant_id: &str) -> bool {
        self.tenants.is_empty() || self.tenants.iter().any(|tenant| tenant == tenant_id)
    }
}
