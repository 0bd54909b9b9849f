//! Calls that someone outside answers.

use async_trait::async_trait;
use sqlx::types::Json as Column;

use super::{Store, dialect::sql_error};
use crate::{
    api::{Access, OutsideTool, OutsideTools, Result, ToolEnd},
    rows::{OutsideRow, now},
    sql,
};

#[async_trait]
impl OutsideTools for Store {
    async fn waiting_tools(
        &self,
        access: &Access,
        conversation_id: &str,
        limit: u32,
    ) -> Result<Vec<OutsideTool>> {
        let query = sqlx::query_as(sql::WAITING_TOOLS).bind(conversation_id);
        let query = query
            .bind(&access.tenant_id)
            .bind(&access.owner_id)
            .bind(i64::from(limit));
        let rows: Vec<OutsideRow> = self
            .in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await?;
        rows.into_iter().map(OutsideRow::outside).collect()
    }

    async fn outside_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
    ) -> Result<Option<OutsideTool>> {
        let query = sqlx::query_as(sql::OUTSIDE_TOOL).bind(conversation_id);
        let query = query
            .bind(&access.tenant_id)
            .bind(&access.owner_id)
            .bind(execution_id);
        let row: Option<OutsideRow> = self
            .in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) })
            .await?;
        row.map(OutsideRow::outside).transpose()
    }

    async fn store_client_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        end: ToolEnd,
    ) -> Result<Option<OutsideTool>> {
        // One statement decides; the turn's end, which locks the record, comes before or after it.
        self.in_time(async {
            sqlx::query(sql::STORE_CLIENT_RESULT)
                .bind(conversation_id)
                .bind(execution_id)
                .bind(&access.tenant_id)
                .bind(&access.owner_id)
                .bind(&end.status)
                .bind(end.is_error)
                .bind(i64::from(end.duration_ms))
                .bind(now())
                .bind(Column(&end.result))
                .bind(end.full_result.as_ref().map(Column))
                .execute(&mut *self.single().await?)
                .await
                .map_err(sql_error)
        })
        .await?;
        self.outside_tool(access, conversation_id, execution_id)
            .await
    }
}
