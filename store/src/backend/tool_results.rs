//! Reads full results of tools in slices. Every method is one statement.

use async_trait::async_trait;
use everturn_proto::Thread;

use super::{
    Database,
    dialect::words,
    sql::{
        self, Select,
        tool_results::{TOOL_RESULT, TOOL_RESULT_OF_THREAD},
    },
};
use crate::{
    api::{Access, Result, ResultRange, ResultSlice, ToolResults},
    rows::tools::ResultSliceRow,
};

#[async_trait]
impl ToolResults for Database {
    async fn tool_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        let query = sql::for_caller(words(TOOL_RESULT), access, conversation_id);
        self.slice(query.bind(execution_id), range).await
    }

    async fn tool_result_of_thread(
        &self,
        conversation_id: &str,
        thread: &Thread,
        execution_id: &str,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        let query = sqlx::query_as(words(TOOL_RESULT_OF_THREAD))
            .bind(conversation_id)
            .bind(thread.sub_agent());
        self.slice(query.bind(execution_id), range).await
    }
}

impl Database {
    async fn slice(
        &self,
        query: Select<'_, ResultSliceRow>,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        let query = query
            .bind(i64::from(range.offset_bytes()))
            .bind(i64::from(range.max_bytes()));
        let row = self.read(query.fetch_optional(self.reader())).await?;
        Ok(row.map(|row| row.slice(range)))
    }
}
