//! Reads past LLM calls.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    Thread,
    limits::{MAX_CONTEXT_BYTES, MAX_CONTEXT_MESSAGES},
    turn::{AgentDefinition, LlmCompleteState, SentContext},
};
use sqlx::FromRow;

use super::{Connection, Database, statement::Statement as _, statements::calls as statements};
use crate::{
    api::{
        Access, ContextMessage, FailedTry, PageLimit, PastCall, PastCallContent, PastCalls,
        PastInput, PastTry, Result, StepKey, TriesOf,
    },
    columns::{now, wide},
    rows::ranked::RankedRow,
};

/// The limit of the read messages: the limit of the call's own read.
const LIMIT: PageLimit = PageLimit {
    rows: MAX_CONTEXT_MESSAGES,
    bytes: MAX_CONTEXT_BYTES,
};

#[derive(FromRow)]
struct CallRow {
    #[sqlx(json)]
    state: LlmCompleteState,
    #[sqlx(json)]
    agent: AgentDefinition,
    message_id: String,
    stored_at: DateTime<Utc>,
}

#[async_trait]
impl PastCalls for Database {
    async fn past_calls(
        &self,
        access: &Access,
        conversation_id: &str,
        agent_execution_id: &str,
        after: Option<u32>,
        limit: u32,
    ) -> Result<Vec<PastCall>> {
        let select = statements::PastCalls {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            agent_execution_id,
            after_step: after.map_or(-1, i64::from),
            row_limit: i64::from(limit),
        };
        let query = select.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn failed_tries(
        &self,
        access: &Access,
        conversation_id: &str,
        agent_execution_id: &str,
        steps: TriesOf,
        limit: u32,
    ) -> Result<Vec<PastTry>> {
        let select = statements::FailedTries {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            agent_execution_id,
            after_step: steps.after.map_or(-1, i64::from),
            through_step: i64::from(steps.through.unwrap_or(u32::MAX)),
            row_limit: i64::from(limit),
        };
        let query = select.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn past_call(
        &self,
        access: &Access,
        conversation_id: &str,
        agent_execution_id: &str,
        step: u32,
    ) -> Result<Option<PastCallContent>> {
        let select = statements::PastCall {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            agent_execution_id,
            step: i64::from(step),
        };
        let query = select.query_as()?;
        let row: Option<CallRow> = self.read(query.fetch_optional(self.reader())).await?;
        let Some(row) = row else { return Ok(None) };
        let thread = Thread::of(conversation_id, &row.message_id, agent_execution_id);
        let input = match row.state.sent.as_deref() {
            None => None,
            Some(sent) => {
                let of = SentBy {
                    access,
                    conversation_id,
                    agent_execution_id,
                    thread: &thread,
                    step,
                    stored_at: row.stored_at,
                };
                let stored = self.sent_messages(&of, sent).await?;
                let (state, agent) = (&row.state, &row.agent);
                Some(PastInput::rebuild(
                    state,
                    sent,
                    agent,
                    (conversation_id, agent_execution_id),
                    stored,
                ))
            }
        };
        Ok(Some(PastCallContent {
            state: row.state,
            agent: row.agent,
            input,
            stored_at: row.stored_at,
        }))
    }
}

/// Notes a try of a claimed call without a reply.
pub(super) async fn note_try(
    connection: &mut Connection,
    step: &StepKey,
    tried: &FailedTry,
) -> Result<()> {
    let pause = tried.retry_after.map(|pause| pause.as_millis());
    let note = statements::NoteTry {
        agent_execution_id: &step.agent_execution_id,
        conversation_id: &step.conversation_id,
        step: i64::from(step.step),
        generation: i64::from(tried.generation),
        model: &tried.model,
        worker_id: tried.worker.as_str(),
        code: &tried.code,
        reason: &tried.reason,
        is_final: tried.is_final,
        retry_after_ms: pause.map(|pause| wide(u64::try_from(pause).unwrap_or(u64::MAX))),
        started_at: tried.started_at,
        ended_at: now(),
        keep: i64::from(tried.keep.max(1)),
    };
    note.query()?.execute(connection).await?;
    Ok(())
}

/// The call whose messages are read.
struct SentBy<'a> {
    access: &'a Access,
    conversation_id: &'a str,
    agent_execution_id: &'a str,
    thread: &'a Thread,
    step: u32,
    stored_at: DateTime<Utc>,
}

impl Database {
    /// Returns the stored messages of a call's context.
    async fn sent_messages(
        &self,
        of: &SentBy<'_>,
        sent: &SentContext,
    ) -> Result<Vec<ContextMessage>> {
        let select = statements::SentMessages {
            conversation_id: of.conversation_id,
            tenant_id: &of.access.tenant_id,
            owner_id: of.access.owner_id.as_deref(),
            agent_execution_id: of.agent_execution_id,
            thread: of.thread.sub_agent().unwrap_or_default(),
            step: i64::from(of.step),
            first_sequence: i64::from(sent.first_sequence),
            last_sequence: i64::from(sent.last_sequence),
            stored_at: of.stored_at,
            row_limit: i64::from(LIMIT.rows) + 1,
            most_bytes: i64::from(LIMIT.bytes),
        };
        let query = select.query_as()?;
        let rows: Vec<RankedRow<ContextMessage>> =
            self.read(query.fetch_all(self.reader())).await?;
        Ok(LIMIT.cut(rows).0)
    }
}
