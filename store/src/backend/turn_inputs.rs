//! Implements `TurnInputs`. Every call is a single read.

use std::collections::BTreeMap;

use async_trait::async_trait;
use everturn_proto::{Thread, turn::AgentDefinition};
use sqlx::types::Json as Column;

use super::{
    Database, runnable_approvals,
    statement::Statement as _,
    statements::{
        agent_executions::Definition,
        context::Context,
        conversations::{AgentOf, OwnerOf},
        messages::MessageTexts,
        outside::{GrantedTools, UsedDefinitions},
    },
};
use crate::{
    api::{
        Access, ContextMessage, DefinedTool, ModelContext, PageLimit, ReadBefore, Result,
        TurnInputs,
    },
    rows::ranked::RankedRow,
};

/// A sequence number that no event has.
const NOTHING_READ: i64 = -1;

#[async_trait]
impl TurnInputs for Database {
    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>> {
        let query = AgentOf { conversation_id }.query_scalar()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn owner_of(&self, conversation_id: &str) -> Result<Option<Access>> {
        let query = OwnerOf { conversation_id }.query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>> {
        let query = Definition { hash }.query_scalar()?;
        let found: Option<Column<AgentDefinition>> =
            self.read(query.fetch_optional(self.reader())).await?;
        Ok(found.map(|definition| definition.0))
    }

    async fn message_texts(
        &self,
        conversation_id: &str,
        message_ids: &[String],
    ) -> Result<BTreeMap<String, String>> {
        let texts = MessageTexts {
            conversation_id,
            message_ids,
        };
        let query = texts.query_as()?;
        let texts: Vec<(String, String)> = self.read(query.fetch_all(self.reader())).await?;
        Ok(texts.into_iter().collect())
    }

    async fn context(
        &self,
        conversation_id: &str,
        thread: &Thread,
        limit: PageLimit,
        read: Option<ReadBefore>,
    ) -> Result<ModelContext> {
        let select = Context {
            conversation_id,
            row_limit: i64::from(limit.rows) + 1,
            thread: thread.sub_agent().unwrap_or_default(),
            most_bytes: i64::from(limit.bytes),
            read_cut: read.map_or(NOTHING_READ, |read| i64::from(read.cut)),
            read_sequence: read.map_or(NOTHING_READ, |read| i64::from(read.last_sequence)),
            read_created_at: read.map(|read| read.last_created_at),
            read_revision: read.map_or(NOTHING_READ, |read| i64::from(read.last_revision)),
        };
        let query = select.query_as()?;
        let rows: Vec<RankedRow<ContextMessage>> =
            self.read(query.fetch_all(self.reader())).await?;
        let (messages, has_more) = limit.cut(rows);
        Ok(ModelContext {
            goes_on: read.is_some_and(|read| read.goes_on_with(&messages)),
            messages,
            has_more,
        })
    }

    async fn granted_tools(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>> {
        let granted = GrantedTools {
            conversation_id,
            tool_names,
        };
        let query = granted.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn used_definitions(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>> {
        let runnable = runnable_approvals();
        let used = UsedDefinitions {
            conversation_id,
            tool_names,
            runnable_approvals: &runnable,
        };
        let query = used.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }
}
