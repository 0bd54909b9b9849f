//! The traces of turns. Every call is a single statement without a conversation's lock.

use async_trait::async_trait;

use super::{
    Database,
    statement::Statement as _,
    statements::traces::{BeginTrace, OfferTrace, TraceOf},
};
use crate::{
    api::{KeptTrace, Result, TraceContext, TraceContexts, TraceKey},
    columns::now,
};

#[async_trait]
impl TraceContexts for Database {
    async fn offer_trace(&self, of: &TraceKey, context: &TraceContext) -> Result<()> {
        self.in_time(async {
            let offer = OfferTrace {
                conversation_id: &of.conversation_id,
                agent_execution_id: &of.agent_execution_id,
                trace_parent: &context.trace_parent,
                trace_state: &context.trace_state,
            };
            offer.query()?.execute(&mut *self.single().await?).await?;
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
        let begin = BeginTrace {
            conversation_id: &of.conversation_id,
            agent_execution_id: &of.agent_execution_id,
            trace_parent: &context.trace_parent,
            trace_state: &context.trace_state,
            agent,
            now: now(),
        };
        let query = begin.query_as()?;
        self.in_time(async { Ok(query.fetch_one(&mut *self.single().await?).await?) })
            .await
    }

    async fn trace_of(&self, of: &TraceKey) -> Result<Option<KeptTrace>> {
        let select = TraceOf {
            conversation_id: &of.conversation_id,
            agent_execution_id: &of.agent_execution_id,
        };
        let query = select.query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }
}
