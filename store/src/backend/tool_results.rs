//! Whole results of tools, a slice at a time. Each method is one statement.

use async_trait::async_trait;
use everturn_proto::Thread;

use super::{
    Store,
    dialect::{sql_error, words},
};
use crate::{
    api::{Access, Result, ResultRange, ResultSlice, ToolResults},
    rows::ResultSliceRow,
    sql,
};

#[async_trait]
impl ToolResults for Store {
    async fn tool_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        let query = sqlx::query_as(words(sql::TOOL_RESULT))
            .bind(conversation_id)
            .bind(execution_id)
            .bind(&access.tenant_id)
            .bind(i64::from(range.offset_bytes()))
            .bind(i64::from(range.max_bytes()))
            .bind(&access.owner_id);
        let row: Option<ResultSliceRow> = self
            .in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) })
            .await?;
        row.map(|row| row.slice(range)).transpose()
    }

    async fn tool_result_of_thread(
        &self,
        conversation_id: &str,
        thread: &Thread,
        execution_id: &str,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        let query = sqlx::query_as(words(sql::TOOL_RESULT_OF_THREAD))
            .bind(conversation_id)
            .bind(execution_id)
            .bind(thread.sub_agent())
            .bind(i64::from(range.offset_bytes()))
            .bind(i64::from(range.max_bytes()));
        let row: Option<ResultSliceRow> = self
            .in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) })
            .await?;
        row.map(|row| row.slice(range)).transpose()
    }
}
