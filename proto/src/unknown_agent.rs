//! The definition of an agent that nobody here knows.

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
}
