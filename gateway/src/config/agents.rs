//! The agents that conversations may have.

use std::sync::{Arc, PoisonError, RwLock};

use everturn_proto::{Responsible, turn::AgentDefinition};

/// An agent that the gateway offers to callers.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedAgent {
    /// The agent's definition. A gateway of its own, which knows no tools, has the tools' names as the file names them.
    pub definition: AgentDefinition,
    /// Messages with which a person may begin. The definition has no samples, because turns do not use them.
    pub samples: Vec<String>,
    /// The owner of the agent, for operators.
    pub responsible: Responsible,
}

impl OfferedAgent {
    /// An agent of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            definition: AgentDefinition::only_a_name(name.to_owned()),
            samples: Vec::new(),
            responsible: Responsible::default(),
        }
    }
}

/// The agents that the gateway offers now. Clones share the list: a new list is the list of every request from then on.
#[derive(Debug, Clone)]
pub struct OfferedAgents(Arc<RwLock<Arc<[OfferedAgent]>>>);

impl OfferedAgents {
    /// Returns a list with these agents.
    pub fn new(agents: Vec<OfferedAgent>) -> Self {
        Self(Arc::new(RwLock::new(agents.into())))
    }

    /// Replaces the list.
    pub fn replace(&self, agents: Vec<OfferedAgent>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = agents.into();
    }

    /// Returns the present list.
    pub(crate) fn now(&self) -> Arc<[OfferedAgent]> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the agent with the name.
    pub(crate) fn with_name(&self, name: &str) -> Option<AgentDefinition> {
        let agents = self.now();
        let mut definitions = agents.iter().map(|agent| &agent.definition);
        definitions.find(|agent| agent.name == name).cloned()
    }

    /// Returns the names of the agents that a conversation of the tenant may be created with.
    pub(crate) fn names_of(&self, tenant_id: &str) -> Vec<String> {
        let agents = self.now();
        let of_tenant = agents
            .iter()
            .filter(|agent| agent.definition.serves(tenant_id));
        of_tenant
            .map(|agent| agent.definition.name.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_tenant(name: &str, tenant_id: &str) -> OfferedAgent {
        let mut agent = OfferedAgent::named(name);
        agent.definition.tenants = vec![tenant_id.to_owned()];
        agent
    }

    #[test]
    fn a_new_list_is_the_list_of_each_tenant() {
        let agents = OfferedAgents::new(vec![OfferedAgent::named("all"), of_tenant("a", "acme")]);
        let clone = agents.clone();
        let before = clone.now();
        assert_eq!(clone.names_of("acme"), ["all", "a"]);
        assert_eq!(clone.names_of("globex"), ["all"]);
        agents.replace(vec![of_tenant("b", "globex")]);
        assert!(clone.names_of("acme").is_empty());
        assert_eq!(clone.names_of("globex"), ["b"]);
        assert_eq!(before.len(), 2, "a request keeps its list");
    }
}
