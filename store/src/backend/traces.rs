//! The traces of turns. Every call is a single statement without a conversation's lock.

use async_trait::async_trait;

use super::{Database, sql::traces as sql};
use crate::{
    api::{KeptTrace, Result, TraceContext, TraceContexts, TraceKey},
    columns::now,
};

#[async_trait]
impl TraceContexts for Database {
    async fn offer_trace(&self, of: &TraceKey, context: &TraceContext) -> Result<()> {
        self.in_time(async {
            sqlx::query(sql::OFFER_TRACE)
                .bind(&of.conversation_id)
                .bind(&of.agent_execution_id)
                .bind(&context.trace_parent)
                .bind(&context.trace_state)
                .execute(&mut *self.single().await?)
                .await?;
            Ok(())
        })
        .await
    }

    async fn begin_trace(
        &self,
        of: &TraceKey,
        context: &TraceContext,
        agent: &str,
    ) -> Result<KeptTrace> {
        let query = sqlx::query_as(sql::BEGIN_TRACE)
            .bind(&of.conversation_id)
            .bind(&of.agent_execution_id)
            .bind(&context.trace_parent)
            .bind(&context.trace_state)
            .bind(agent)
            .bind(now());
        self.in_time(async { Ok(query.fetch_one(&mut *self.single().await?).await?) })
            .await
    }

    async fn trace_of(&self, of: &TraceKey) -> Result<Option<KeptTrace>> {
        let query = sqlx::query_as(sql::TRACE_OF)
            .bind(&of.conversation_id)
            .bind(&of.agent_execution_id);
        self.read(query.fetch_optional(self.reader())).await
    }
}
