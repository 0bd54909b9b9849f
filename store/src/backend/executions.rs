//! The tree of executions. Every method is one statement.

use async_trait::async_trait;

use super::{Store, dialect::sql_error};
use crate::{
    api::{Access, AgentExecution, AgentExecutionPlace, AgentExecutions, Result},
    rows::AgentExecutionRow,
    sql,
};

#[async_trait]
impl AgentExecutions for Store {
    async fn agent_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        after: Option<AgentExecutionPlace>,
        limit: u32,
    ) -> Result<Vec<AgentExecution>> {
        // All executions are younger than the epoch.
        let AgentExecutionPlace { started_at, id } = after.unwrap_or_default();
        let query = sqlx::query_as(sql::EXECUTIONS).bind(conversation_id);
        let query = query
            .bind(&access.tenant_id)
            .bind(&access.owner_id)
            .bind(started_at)
            .bind(id);
        let query = query.bind(i64::from(limit));
        let rows: Vec<AgentExecutionRow> = self
            .in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await?;
        rows.into_iter()
            .map(AgentExecutionRow::agent_execution)
            .collect()
    }

    async fn agent_execution(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
    ) -> Result<Option<AgentExecution>> {
        let query = sqlx::query_as(sql::EXECUTION).bind(conversation_id);
        let query = query
            .bind(&access.tenant_id)
            .bind(&access.owner_id)
            .bind(id);
        let row: Option<AgentExecutionRow> = self
            .in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) })
            .await?;
        row.map(AgentExecutionRow::agent_execution).transpose()
    }
}
