//! What a worker asks for: plain reads here, the transactions in `begin.rs`, `claims.rs` and `save.rs`.

use async_trait::async_trait;
use everturn_proto::turn::{AgentDefinition, LlmCompleteState, SaveRequest};
use sqlx::{QueryBuilder, types::Json as Column};

use super::{SqliteStore, begin, claims, commit, error::sql_error, save, write::push_list};
use crate::{
    api::{
        BeginTurn, BegunTurn, ContextMessage, Result, Saved, StepClaim, StepKey, ToolClaim, ToolEnd, ToolKey,
        ToolRecord, TurnStore,
    },
    rows::{ContextRow, context_window},
    sql,
};

#[async_trait]
impl TurnStore for SqliteStore {
    async fn begin_turn(&self, turn: BeginTurn) -> Result<BegunTurn> {
        let mut transaction = self.begin().await?;
        let begun = begin::begin_turn(&mut transaction, turn).await?;
        commit(transaction).await?;
        Ok(begun)
    }

    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>> {
        let found: Option<Column<AgentDefinition>> =
            sqlx::query_scalar(sql::DEFINITION).bind(hash).fetch_optional(&self.read).await.map_err(sql_error)?;
        Ok(found.map(|definition| definition.0))
    }

    async fn context(&self, conversation_id: &str, limit: u32) -> Result<Vec<ContextMessage>> {
        let rows: Vec<ContextRow> = sqlx::query_as(sql::CONTEXT)
            .bind(conversation_id)
            // One more than asked for says whether anything is cut.
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.read)
            .await
            .map_err(sql_error)?;
        Ok(context_window(rows, usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    async fn used_call_ids(&self, conversation_id: &str, call_ids: &[String]) -> Result<Vec<String>> {
        if call_ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new(sql::USED_CALL_IDS);
        query.push_bind(conversation_id).push(" AND call_id IN ");
        push_list(&mut query, call_ids);
        query.build_query_scalar().fetch_all(&self.read).await.map_err(sql_error)
    }

    async fn claim_step(&self, step: &StepKey) -> Result<StepClaim> {
        let mut transaction = self.begin().await?;
        let claim = claims::claim_step(&mut transaction, step).await?;
        commit(transaction).await?;
        Ok(claim)
    }

    async fn complete_step(&self, step: &StepKey, state: LlmCompleteState) -> Result<LlmCompleteState> {
        let mut transaction = self.begin().await?;
        let winner = claims::complete_step(&mut transaction, step, &state).await?;
        commit(transaction).await?;
        Ok(winner)
    }

    async fn save_partial(&self, step: &StepKey, state: LlmCompleteState) -> Result<()> {
        let mut transaction = self.begin().await?;
        claims::save_partial(&mut transaction, step, &state).await?;
        commit(transaction).await
    }

    async fn claim_tool(&self, key: &ToolKey) -> Result<ToolClaim> {
        let mut transaction = self.begin().await?;
        let claim = claims::claim_tool(&mut transaction, key).await?;
        commit(transaction).await?;
        Ok(claim)
    }

    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord> {
        let mut transaction = self.begin().await?;
        let winner = claims::finish_tool(&mut transaction, key, end).await?;
        commit(transaction).await?;
        Ok(winner)
    }

    async fn save(&self, request: &SaveRequest) -> Result<Saved> {
        let mut transaction = self.begin().await?;
        let saved = save::save(&mut transaction, request).await?;
        commit(transaction).await?;
        Ok(saved)
    }
}
