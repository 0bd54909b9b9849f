//! Definitions of agents. A definition is stored once, by its hash.

use everturn_proto::turn::AgentDefinition;
use sqlx::types::Json as Column;

use super::{dialect::Parts, sql::agent_executions::INSERT_DEFINITION};
use crate::{api::Result, error::StoreError};

/// Returns the hash of a definition.
pub(crate) fn hash(agent: &AgentDefinition) -> Result<String> {
    let no_json = |error| StoreError::Conflict(format!("the agent has no JSON form: {error}"));
    agent.hash().map_err(no_json)
}

/// Adds a definition, unless the definition is stored already.
pub(crate) fn insert(parts: &mut Parts, hash: &str, agent: &AgentDefinition) {
    parts.add(INSERT_DEFINITION, |values| {
        values.bind(hash).bind(Column(agent));
    });
}
