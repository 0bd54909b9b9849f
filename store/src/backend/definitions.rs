//! Definitions of agents. A definition is stored once, by its hash.

use everturn_proto::turn::AgentDefinition;

use super::{dialect::Parts, statements::agent_executions::InsertDefinition};
use crate::{api::Result, error::StoreError};

/// Returns the hash of a definition.
pub(crate) fn hash(agent: &AgentDefinition) -> Result<String> {
    let no_json = |error| StoreError::Conflict(format!("the agent has no JSON form: {error}"));
    agent.hash().map_err(no_json)
}

/// Adds a definition, unless the definition is stored already.
pub(crate) fn insert(parts: &mut Parts, hash: &str, agent: &AgentDefinition) {
    parts.add(InsertDefinition {
        hash,
        definition: agent,
    });
}
