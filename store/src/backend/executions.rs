//! The tree of executions. Every method is one statement.

use async_trait::async_trait;

use super::{Store, dialect::sql_error};
use crate::{
    api::{Access, Execution, ExecutionPlace, Executions, Result},
    rows::ExecutionRow,
    sql,
};

#[async_trait]
impl Executions for Store {
    async fn executions(
        &self,
        access: &Access,
        conversation_id: &str,
        after: Option<ExecutionPlace>,
        limit: u32,
    ) -> Result<Vec<Execution>> {
        // All executions are younger than the epoch.
        let ExecutionPlace { started_at, id } = after.unwrap_or_default();
        let query = sqlx::query_as(sql::EXECUTIONS).bind(conversation_id);
        let query = query
            .bind(&access.tenant_id)
            .bind(&access.owner_id)
            .bind(started_at)
            .bind(id);
        let query = query.bind(i64::from(limit));
        let rows: Vec<ExecutionRow> = self
            .in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await?;
        rows.into_iter().map(ExecutionRow::execution).collect()
    }

    async fn execution(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
    ) -> Result<Option<Execution>> {
        let query = sqlx::query_as(sql::EXECUTION).bind(conversation_id);
        let query = query
            .bind(&access.tenant_id)
            .bind(&access.owner_id)
            .bind(id);
        let row: Option<ExecutionRow> = self
            .in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) })
            .await?;
        row.map(ExecutionRow::execution).transpose()
    }
}
