//! What a worker asks for: plain reads here, the transactions in `begin.rs`, `claims.rs` and `save.rs`.

use std::collections::BTreeMap;

use async_trait::async_trait;
use everturn_proto::turn::{AgentDefinition, LlmCompleteState, SaveRequest};
use sqlx::types::Json as Column;

use super::{
    Store, begin, claims, commit, delegate,
    dialect::{list, sql_error, words},
    save,
};
use crate::{
    api::{
        BeginTurn, BegunTurn, ContextMessage, Result, Saved, StepClaim, StepKey, ToolClaim,
        ToolEnd, ToolKey, ToolRecord, TurnStore,
    },
    rows::{ContextRow, context_window},
    sql,
};

#[async_trait]
impl TurnStore for Store {
    async fn begin_turn(&self, turn: BeginTurn) -> Result<BegunTurn> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let begun = begin::begin_turn(&mut transaction, turn).await?;
            commit(transaction).await?;
            Ok(begun)
        })
        .await
    }

    async fn begin_sub_agent(
        &self,
        call: &ToolKey,
        agents: &BTreeMap<String, AgentDefinition>,
    ) -> Result<BegunTurn> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let begun = delegate::begin_sub_agent(&mut transaction, call, agents).await?;
            commit(transaction).await?;
            Ok(begun)
        })
        .await
    }

    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>> {
        let query = sqlx::query_scalar(sql::AGENT_OF).bind(conversation_id);
        self.in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) })
            .await
    }

    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>> {
        let query = sqlx::query_scalar(sql::DEFINITION).bind(hash);
        let found: Option<Column<AgentDefinition>> = self
            .in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) })
            .await?;
        Ok(found.map(|definition| definition.0))
    }

    async fn context(
        &self,
        conversation_id: &str,
        thread: &str,
        limit: u32,
    ) -> Result<Vec<ContextMessage>> {
        // One more than asked for says whether anything is cut.
        let query = sqlx::query_as(sql::CONTEXT)
            .bind(conversation_id)
            .bind(i64::from(limit) + 1)
            .bind(thread);
        let rows: Vec<ContextRow> = self
            .in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await?;
        Ok(context_window(
            rows,
            usize::try_from(limit).unwrap_or(usize::MAX),
        ))
    }

    async fn used_call_ids(
        &self,
        conversation_id: &str,
        call_ids: &[String],
    ) -> Result<Vec<String>> {
        if call_ids.is_empty() {
            return Ok(Vec::new());
        }
        let query = sqlx::query_scalar(words(sql::USED_CALL_IDS))
            .bind(conversation_id)
            .bind(list(call_ids));
        self.in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await
    }

    async fn granted_tools(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<String>> {
        let query = sqlx::query_scalar(words(sql::GRANTED_TOOLS))
            .bind(conversation_id)
            .bind(list(tool_names));
        self.in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await
    }

    async fn claim_step(&self, step: &StepKey) -> Result<StepClaim> {
        self.in_time(async { claims::claim_step(&mut *self.single().await?, step).await })
            .await
    }

    async fn complete_step(
        &self,
        step: &StepKey,
        state: LlmCompleteState,
    ) -> Result<LlmCompleteState> {
        self.in_time(async { claims::complete_step(&mut *self.single().await?, step, state).await })
            .await
    }

    async fn save_partial(&self, step: &StepKey, state: LlmCompleteState) -> Result<()> {
        self.in_time(async { claims::save_partial(&mut *self.single().await?, step, &state).await })
            .await
    }

    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let claim = claims::claim_tool(&mut transaction, key, claimant).await?;
            commit(transaction).await?;
            Ok(claim)
        })
        .await
    }

    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord> {
        self.in_time(async { claims::finish_tool(&mut *self.single().await?, key, end).await })
            .await
    }

    async fn save(&self, request: &SaveRequest) -> Result<Saved> {
        self.in_time(async {
            let mut transaction = self.begin().await?;
            let saved = save::save(&mut transaction, request).await?;
            commit(transaction).await?;
            Ok(saved)
        })
        .await
    }
}
