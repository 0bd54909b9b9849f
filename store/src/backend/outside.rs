//! Tool calls answered from outside: by a person, a client or a remote tool.

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, Utc};
use everturn_proto::{
    turn::{ResolveApproval, SavedApproval},
    words::{ApprovalBy, ApprovalState, CheckpointType, Decision, ToolKind, ToolStatus},
};
use sqlx::{FromRow, types::Json as Column};

use super::{
    Connection, Database, approvals,
    dialect::{Parts, WRITES_IN_PARTS},
    key_of_caller,
    list_changes::{self, Change},
    outcomes, runnable_approvals,
    statement::Statement as _,
    statements::outside::{
        self, ApprovalInbox, ClaimClientTool, NoteAnswer, Proposals, SavedAnswer, StoreResult,
        WaitingTools,
    },
    write::{self, Completion},
};
use crate::{
    api::{
        Access, ClientToolClaim, InboxCall, InboxCursor, NewAnswer, NewAuditEntry, NotedAnswer,
        OutsideTool, OutsideTools, PageLimit, PersonsOutcome, Proposal, Result, ResultSender,
        SettledOutcome, StepKey, ToolEnd,
    },
    batch::completion_id,
    columns::now,
    rows::{
        ranked::RankedRow,
        tools::{InboxCallRow, OutsideToolRow, SavedRow},
    },
};

/// The most noted answers per call. Further answers exist only if they arrive before the turn stores an answer.
const MAX_ANSWERS: i64 = 32;

/// The most proposals of a read: more than people make for the calls of a page.
const MAX_PROPOSALS: i64 = 256;

/// A person's approval of another input.
#[derive(FromRow)]
struct ProposalRow {
    conversation_id: String,
    execution_id: String,
    answered_by: String,
    answered_at: DateTime<Utc>,
    answer: Column<ResolveApproval>,
}

impl From<ProposalRow> for Proposal {
    fn from(row: ProposalRow) -> Self {
        Self {
            conversation_id: row.conversation_id,
            execution_id: row.execution_id,
            proposed_by: row.answered_by,
            proposed_at: row.answered_at,
            input: row.answer.0.tool_input.unwrap_or_default(),
        }
    }
}

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
        let mut needs_second = false;
        if answer.answer.outcome() == ApprovalState::Approved {
            let who = answer.answered_by.filter(|_| answer.is_person);
            let terms = self.in_time(async {
                let connection = &mut *self.single().await?;
                approvals::terms(connection, conversation_id, execution_id, who).await
            });
            // The note of an answer to an unknown call is refused below.
            if let Some(terms) = terms.await? {
                if !terms.lets_approve(who) {
                    return Ok(NotedAnswer::NeedsOther);
                }
                needs_second = terms.needs_second(answer.answer);
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
        if noted.is_none() {
            return Ok(NotedAnswer::TooMany);
        }
        if needs_second {
            let seconded = self.in_time(async {
                let connection = &mut *self.single().await?;
                approvals::is_seconded(connection, conversation_id, execution_id, answer.id).await
            });
            if !seconded.await? {
                return Ok(NotedAnswer::NeedsSecond);
            }
        }
        Ok(NotedAnswer::Noted)
    }

    async fn settle_outcome(
        &self,
        access: &Access,
        conversation_id: &str,
        outcome: &PersonsOutcome,
        audit: &NewAuditEntry,
    ) -> Result<SettledOutcome> {
        let is_made = |done: &SettledOutcome| matches!(done, SettledOutcome::Settled(_));
        self.audited(Some(audit), is_made, async |connection| {
            outcomes::settle(connection, access, conversation_id, outcome).await
        })
        .await
    }

    async fn approval_inbox(
        &self,
        access: &Access,
        after: Option<&InboxCursor>,
        limit: PageLimit,
    ) -> Result<(Vec<InboxCall>, bool)> {
        let inbox = ApprovalInbox {
            tenant_id: &access.tenant_id,
            approver: access.owner_id.as_deref(),
            after_expires_at: after.map(|after| after.expires_at),
            after_execution_id: after.map_or("", |after| after.execution_id.as_str()),
            by_other: ApprovalBy::Other.as_str(),
            row_limit: i64::from(limit.rows) + 1,
            most_bytes: i64::from(limit.bytes),
            now: now(),
        };
        let query = inbox.query_as()?;
        let rows: Vec<RankedRow<InboxCallRow>> = self.read(query.fetch_all(self.reader())).await?;
        let (calls, has_more) = limit.cut(rows);
        Ok((calls.into_iter().map(InboxCall::from).collect(), has_more))
    }

    async fn proposals(&self, calls: &[(String, String)]) -> Result<Vec<Proposal>> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let (conversations, executions): (Vec<_>, Vec<_>) = calls.iter().cloned().unzip();
        let proposals = Proposals {
            conversation_ids: &conversations,
            execution_ids: &executions,
            approve: Decision::Approve.as_str(),
            row_limit: MAX_PROPOSALS,
        };
        let query = proposals.query_as()?;
        let rows: Vec<ProposalRow> = self.read(query.fetch_all(self.reader())).await?;
        Ok(rows.into_iter().map(Proposal::from).collect())
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
