//! The agents of the worker's configuration, by name, and by the hash to which turns are pinned.

use std::collections::{BTreeMap, HashMap};

use everturn_proto::{Responsible, turn::AgentDefinition, words::FailureCode};
use everturn_store::TurnInputs;
use temporalio_common::ActivityError;

use crate::{attempt::Attempt, failure as fail};

/// The agents of a worker's configuration at one time. A worker with changed files gets new known agents.
#[derive(Debug, Default)]
pub struct KnownAgents {
    by_name: BTreeMap<String, AgentDefinition>,
    /// The definitions of the agents' turns, by hash: with the agent's own model, and with each model that a message may
    /// choose.
    by_hash: HashMap<String, AgentDefinition>,
    responsible: BTreeMap<String, Responsible>,
}

impl KnownAgents {
    /// Makes the list of known agents.
    ///
    /// # Errors
    ///
    /// A definition has no JSON form, from which its hash is computed.
    pub fn of(
        agents: impl IntoIterator<Item = AgentDefinition>,
    ) -> Result<Self, serde_json::Error> {
        let mut known = Self::default();
        for agent in agents {
            known.by_name.insert(agent.name.clone(), agent.clone());
            for turn in agent.of_turns() {
                known.by_hash.insert(turn.hash()?, turn);
            }
        }
        Ok(known)
    }

    /// Names the persons who are responsible for the agents, by the agents' names.
    #[must_use]
    pub fn with_responsible(self, responsible: BTreeMap<String, Responsible>) -> Self {
        Self {
            responsible,
            ..self
        }
    }

    /// Returns the persons who are responsible for an agent of the present configuration.
    pub(crate) fn responsible(&self, agent: &str) -> Option<&Responsible> {
        self.responsible.get(agent)
    }

    /// Returns the agents by name.
    pub(crate) fn by_name(&self) -> &BTreeMap<String, AgentDefinition> {
        &self.by_name
    }

    /// Returns the definition by hash. The definitions of an older configuration, to which older turns are pinned, are
    /// only in the store.
    pub(crate) fn with_hash(&self, hash: &str) -> Option<&AgentDefinition> {
        self.by_hash.get(hash)
    }

    /// Returns a turn's pinned agent, by hash. Only agents of another configuration are read from the store.
    pub(crate) async fn pinned(
        &self,
        inputs: &dyn TurnInputs,
        attempt: &Attempt<'_>,
        hash: &str,
    ) -> Result<AgentDefinition, ActivityError> {
        if let Some(agent) = self.with_hash(hash) {
            return Ok(agent.clone());
        }
        let agent = attempt.insist(|| inputs.agent_definition(hash)).await?;
        agent.ok_or_else(|| {
            let message = format!("The agent definition {hash} is not stored.");
            fail::permanent(FailureCode::Internal, message)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use everturn_proto::turn::FallbackModel;

    use super::*;

    #[test]
    fn an_agent_is_known_by_the_hash_of_its_definition() {
        let agent = |model: &str| AgentDefinition {
            model: Some(model.to_owned()),
            ..AgentDefinition::only_a_name("a".to_owned())
        };
        let (now, before) = (agent("new"), agent("old"));
        let known = KnownAgents::of([now.clone()]).unwrap();
        assert_eq!(known.with_hash(&now.hash().unwrap()), Some(&now));
        assert_eq!(known.with_hash(&before.hash().unwrap()), None);
    }

    #[test]
    fn a_turn_with_a_chosen_model_is_known_too() {
        let other = FallbackModel {
            provider: "p".to_owned(),
            model: "other".to_owned(),
            ..FallbackModel::default()
        };
        let agent = AgentDefinition {
            model: Some("own".to_owned()),
            models: vec![other],
            ..AgentDefinition::only_a_name("a".to_owned())
        };
        let known = KnownAgents::of([agent.clone()]).unwrap();
        let turn = agent.clone().with_choice(Some("p/other"));
        assert_eq!(known.with_hash(&turn.hash().unwrap()), Some(&turn));
        assert_eq!(known.by_name()["a"], agent);
    }
}
