//! Tool calls answered from outside: by a person, a client or a remote tool.

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, Utc};
use everturn_proto::{
    turn::SavedApproval,
    words::{ApprovalState, CheckpointType, ToolKind, ToolStatus},
};
use sqlx::FromRow;

use super::{
    Connection, Database, approvals,
    dialect::{Parts, WRITES_IN_PARTS},
    key_of_caller,
    list_changes::{self, Change},
    runnable_approvals,
    statement::Statement as _,
    statements::outside::{
        self, ClaimClientTool, NoteAnswer, SavedAnswer, StoreResult, WaitingTools,
    },
    write::{self, Completion},
};
use crate::{
    api::{
        Access, ClientToolClaim, NewAnswer, NewAuditEntry, NotedAnswer, OutsideTool, OutsideTools,
        PageLimit, Result, ResultSender, StepKey, ToolEnd,
    },
    batch::completion_id,
    columns::now,
    rows::{
        ranked::RankedRow,
        tools::{OutsideToolRow, SavedRow},
    },
};

/// The most noted answers per call. Further answers exist only if they arrive before the turn stores an answer.
const MAX_ANSWERS: i64 = 32;

/// The call of an ended tool execution.
#[derive(FromRow)]
struct EndedRow {
    agent_execution_id: String,
    message_id: String,
    #[sqlx(try_from = "i64")]
    step: u32,
    #[sqlx(try_from = "i64")]
    attempt: u32,
}

impl EndedRow {
    /// Writes the checkpoint of the end. PostgreSQL's statement of the end has the checkpoint.
    async fn complete(
        self,
        connection: &mut Connection,
        conversation_id: &str,
        execution_id: &str,
        status: &ToolStatus,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let step = StepKey {
            conversation_id: conversation_id.to_owned(),
            message_id: self.message_id,
            agent_execution_id: self.agent_execution_id,
            step: self.step,
            epoch: None,
        };
        let completion = Completion {
            step: &step,
            number: step.step,
            execution_id,
            attempt: self.attempt,
            status,
        };
        let mut parts = Parts::default();
        write::complete(&mut parts, &[completion], now);
        parts.execute(connection).await
    }
}

#[async_trait]
impl OutsideTools for Database {
    async fn waiting_tools(
        &self,
        access: &Access,
        conversation_id: &str,
        limit: PageLimit,
    ) -> Result<Vec<OutsideTool>> {
        let waiting = WaitingTools {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            row_limit: i64::from(limit.rows) + 1,
            most_bytes: i64::from(limit.bytes),
            now: now(),
        };
        let query = waiting.query_as()?;
        let rows: Vec<RankedRow<OutsideToolRow>> =
            self.read(query.fetch_all(self.reader())).await?;
        let (waiting, _) = limit.cut(rows);
        Ok(waiting.into_iter().map(OutsideTool::from).collect())
    }

    async fn outside_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
    ) -> Result<Option<OutsideTool>> {
        let tool = outside::OutsideTool {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            execution_id,
            now: now(),
        };
        let query = tool.query_as()?;
        let row: Option<OutsideToolRow> = self.read(query.fetch_optional(self.reader())).await?;
        Ok(row.map(OutsideTool::from))
    }

    async fn store_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        sender: ResultSender<'_>,
        end: ToolEnd,
    ) -> Result<Option<OutsideTool>> {
        let runnable = runnable_approvals();
        let (kind, status, run_id) = match sender {
            ResultSender::Client => (ToolKind::Client, ToolStatus::Pending, None),
            ResultSender::RemoteTool { run_id } => {
                (ToolKind::Remote, ToolStatus::Running, Some(run_id))
            }
        };
        let changes_lists = kind == ToolKind::Client;
        let now = now();
        let Change {
            slot,
            first_version,
        } = Change::of(conversation_id, now);
        let state = write::complete_state(execution_id, &end.status);
        // A single statement decides. The end of the turn locks the same record and therefore comes before or after
        // this statement.
        let store = StoreResult {
            status: end.status.as_str(),
            is_error: end.is_error,
            duration_ms: i64::from(end.duration_ms),
            now,
            events: &end.events,
            result: &end.result,
            full_result: end.full_result.as_ref(),
            conversation_id,
            execution_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            runnable_approvals: &runnable,
            kind: kind.as_str(),
            open_status: status.as_str(),
            claimant: run_id,
            checkpoint_id: &completion_id(conversation_id, execution_id),
            checkpoint_type: CheckpointType::ToolComplete.as_str(),
            execution_state: &state,
            changes_lists,
            slot,
            first_version,
        };
        let query = store.query_as::<EndedRow>()?;
        let call = self.together(async |connection| {
            let ended = query.fetch_all(&mut *connection).await?.pop();
            if !WRITES_IN_PARTS && let Some(ended) = ended {
                let completed =
                    ended.complete(connection, conversation_id, execution_id, &end.status, now);
                completed.await?;
                if changes_lists {
                    list_changes::note(connection, conversation_id).await?;
                }
            }
            Ok(())
        });
        self.in_claim_share(&key_of_caller(access, conversation_id), call)
            .await?;
        self.outside_tool(access, conversation_id, execution_id)
            .await
    }

    async fn note_answer(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        answer: NewAnswer<'_>,
        audit: Option<&NewAuditEntry>,
    ) -> Result<NotedAnswer> {
        if answer.answer.outcome() == ApprovalState::Approved {
            let may = self.in_time(async {
                let connection = &mut *self.single().await?;
                let who = answer.answered_by;
                approvals::may_approve(connection, conversation_id, execution_id, who).await
            });
            if !may.await? {
                return Ok(NotedAnswer::NeedsOther);
            }
        }
        let note = NoteAnswer {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            execution_id,
            answer_id: answer.id,
            answered_by: answer.answered_by.unwrap_or_default(),
            now: now(),
            answer: answer.answer,
            max_answers: MAX_ANSWERS,
        };
        let query = note.query_as()?;
        let is_made = Option::is_some;
        let call = self.audited(audit, is_made, async |connection| {
            Ok(query.fetch_optional(&mut *connection).await?)
        });
        let noted: Option<(String,)> = call.await?;
        Ok(match noted {
            Some(_) => NotedAnswer::Noted,
            None => NotedAnswer::TooMany,
        })
    }

    async fn saved_answer(
        &self,
        conversation_id: &str,
        execution_id: &str,
    ) -> Result<Option<SavedApproval>> {
        let select = SavedAnswer {
            conversation_id,
            execution_id,
        };
        let query = select.query_as()?;
        let row: Option<SavedRow> = self.read(query.fetch_optional(self.reader())).await?;
        Ok(row.map(SavedApproval::from))
    }

    async fn claim_client_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        claimant: &str,
        until: DateTime<Utc>,
    ) -> Result<Option<ClientToolClaim>> {
        // A single statement decides which client gets the call.
        let claim = ClaimClientTool {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            execution_id,
            claimant,
            expires_at: until.trunc_subsecs(3),
            now: now(),
        };
        let query = claim.query_as()?;
        let call =
            self.in_time(async { Ok(query.fetch_optional(&mut *self.single().await?).await?) });
        let key = key_of_caller(access, conversation_id);
        let claimed: Option<(i64,)> = self.in_claim_share(&key, call).await?;
        if let Some((claims,)) = claimed {
            let is_repeated = claims > 1;
            return Ok(Some(ClientToolClaim::Run { is_repeated }));
        }
        let held_claim = outside::ClientToolClaim {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            execution_id,
        };
        let query = held_claim.query_as()?;
        let held: Option<(DateTime<Utc>,)> = self.read(query.fetch_optional(self.reader())).await?;
        Ok(held.map(|(until,)| ClientToolClaim::Held { until }))
    }
}
