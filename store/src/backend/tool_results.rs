//! Reads full results of tools in slices. Every method is one statement.

use async_trait::async_trait;
use everturn_proto::Thread;

use super::{
    Database,
    statement::Statement,
    statements::tool_results::{ToolResult, ToolResultOfThread},
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
        let result = ToolResult {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            execution_id,
            offset_bytes: i64::from(range.offset_bytes()),
            most_bytes: i64::from(range.max_bytes()),
        };
        self.slice(result, range).await
    }

    async fn tool_result_of_thread(
        &self,
        conversation_id: &str,
        thread: &Thread,
        execution_id: &str,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        let result = ToolResultOfThread {
            conversation_id,
            sub_agent: thread.sub_agent(),
            execution_id,
            offset_bytes: i64::from(range.offset_bytes()),
            most_bytes: i64::from(range.max_bytes()),
        };
        self.slice(result, range).await
    }
}

impl Database {
    async fn slice(
        &self,
        result: impl Statement,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        let query = result.query_as::<ResultSliceRow>()?;
        let row = self.read(query.fetch_optional(self.reader())).await?;
        Ok(row.map(|row| row.slice(range)))
    }
}
