//! Definitions of agents: each is stored once, by its hash.

use everturn_proto::turn::AgentDefinition;
use sqlx::types::Json as Column;

use super::{Connection, sql::agent_executions::INSERT_DEFINITION};
use crate::{api::Result, error::StoreError};

/// Returns the hash of a definition.
pub(super) fn hash(agent: &AgentDefinition) -> Result<String> {
    let no_json = |error| StoreError::Conflict(format!("the agent has no JSON form: {error}"));
    agent.hash().map_err(no_json)
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
