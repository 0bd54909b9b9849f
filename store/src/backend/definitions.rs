//! Definitions of agents: each is stored once, by its hash.

use everturn_proto::{ids, turn::AgentDefinition};
use sqlx::types::Json as Column;

use super::{Connection, sql::agent_executions::INSERT_DEFINITION};
use crate::{api::Result, error::StoreError};

/// Returns the hash of a definition, which is the hash of its JSON.
pub(super) fn hash(agent: &AgentDefinition) -> Result<String> {
    let json = serde_json::to_string(agent)
        .map_err(|error| StoreError::Conflict(format!("the agent has no JSON form: {error}")))?;
    Ok(ids::definition_hash(&json))
}

/// Stores a definition, unless it is stored already.
pub(super) async fn insert(
    connection: &mut Connection,
    hash: &str,
    agent: &AgentDefinition,
) -> Result<()> {
    sqlx::query(INSERT_DEFINITION)
        .bind(hash)
        .bind(Column(agent))
        .execute(connection)
        .await?;
    Ok(())
}
