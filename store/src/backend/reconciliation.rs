//! Unfinished conversations, and the schedule for the gateways' checks of them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    ids,
    limits::MAX_QUEUED_MESSAGES,
    turn::AgentDefinition,
    words::{ApprovalState, CheckpointType, OnBusy},
};

use super::{
    Connection, Database, begin,
    statement::Statement as _,
    statements::reconciliation::{
        CheckNote as SelectCheckNote, DueChecks as SelectDueChecks, DueHooks as SelectDueHooks,
        NoteCheck, NoteHooks, NoteWalk, RemoveChecks, ScheduleChecks, SetDue, TakeTurn,
        UnfinishedConversation, UnfinishedTurn as SelectUnfinishedTurn, WaitingMessages,
    },
};
use crate::{
    api::{
        BeginTurn, CheckNote, CheckPace, Conversation, DayBudget, DueBatch, DueCheck, DueHooks,
        OnUnknownAgent, Reconciliation, Result, TurnFailure, Unfinished, UnfinishedTurn,
        WaitingMessage,
    },
    rows::conversations::UnfinishedTurnRow,
};

/// The most conversations added to the schedule at once: the turns that fall silent within 5 s, at 4,000 in a second. The
/// next look adds the rest.
const SCHEDULED_AT_ONCE: i64 = 20_000;

#[async_trait]
impl Reconciliation for Database {
    async fn begin_look(&self, pace: &CheckPace) -> Result<bool> {
        self.transaction(async |connection| begin_look(connection, pace).await)
            .await
    }

    async fn due_checks(&self, pace: &CheckPace) -> Result<DueBatch> {
        self.transaction(async |connection| due_checks(connection, pace).await)
            .await
    }

    async fn unfinished(&self, conversation_id: &str) -> Result<Option<Unfinished>> {
        self.transaction(async |connection| unfinished(connection, conversation_id).await)
            .await
    }

    async fn put_back_checks(&self, rest: &[DueCheck]) -> Result<()> {
        self.transaction(async |connection| {
            // Checks that were scheduled or postponed together have an identical due time, so the groups are few.
            for group in rest.chunk_by(|one, other| one.due_at == other.due_at) {
                set_due(connection, group, group[0].due_at).await?;
            }
            Ok(())
        })
        .await
    }

    async fn note_check(&self, conversation_id: &str, note: &CheckNote) -> Result<()> {
        self.in_time(async {
            let note = NoteCheck {
                conversation_id,
                starts: i64::from(note.starts),
                last_sequence: i64::from(note.last_sequence),
                signalled_until: note.signalled_until,
            };
            note.query()?.execute(&mut *self.single().await?).await?;
            Ok(())
        })
        .await
    }

    async fn due_hooks(&self, due_before: DateTime<Utc>, limit: u32) -> Result<Vec<DueHooks>> {
        let select = SelectDueHooks {
            due_before,
            row_limit: i64::from(limit),
        };
        let query = select.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn note_hooks(
        &self,
        agent_execution_id: &str,
        due_at: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        self.in_time(async {
            let note = NoteHooks {
                agent_execution_id,
                due_at,
            };
            let noted = note.query()?.execute(&mut *self.single().await?).await?;
            Ok(noted.rows_affected() > 0)
        })
        .await
    }

    async fn fail_turn(
        &self,
        conversation: &Conversation,
        message_id: &str,
        failure: TurnFailure,
    ) -> Result<bool> {
        let begin = BeginTurn {
            conversation_id: conversation.id.clone(),
            tenant_id: conversation.tenant_id.clone(),
            message_id: message_id.to_owned(),
            content: None,
            agent_execution_id: ids::root_agent_execution_id(&conversation.id, message_id),
            // No model is called, so the agent's name is enough.
            agent: AgentDefinition::only_a_name(conversation.agent.clone()),
            on_unknown_agent: OnUnknownAgent::Begin,
            tenant_budget: DayBudget::default(),
            // No run asks, so the call uses the conversation's own epoch.
            epoch: None,
        };
        self.locking(&conversation.id, async |connection| {
            Box::pin(begin::fail_turn(connection, begin, failure)).await
        })
        .await
    }
}

/// The unfinished turn of a conversation, as the database returns the turn.
#[derive(sqlx::FromRow)]
struct TurnRow {
    #[sqlx(flatten)]
    turn: UnfinishedTurnRow,
    cancel_reason: Option<String>,
}

/// A due check, as the database returns the check.
#[derive(sqlx::FromRow)]
struct DueRow {
    #[sqlx(flatten)]
    check: DueCheck,
    has_stalled: bool,
}

async fn begin_look(connection: &mut Connection, pace: &CheckPace) -> Result<bool> {
    let take = TakeTurn {
        now: pace.now,
        asked_before: pace.asked_before,
    };
    let after: Option<String> = take
        .query_scalar()?
        .fetch_optional(&mut *connection)
        .await?;
    let Some(after) = after else {
        return Ok(false);
    };
    let walk_limit = i64::from(pace.walk);
    let schedule = ScheduleChecks {
        after: &after,
        now: pace.now,
        stalled_since: pace.stalled_since,
        walk_limit,
        row_limit: SCHEDULED_AT_ONCE,
    };
    schedule.query()?.execute(&mut *connection).await?;
    let note = NoteWalk {
        after: &after,
        walk_limit,
        last_of_walk: (walk_limit - 1).max(0),
    };
    note.query()?.execute(connection).await?;
    Ok(true)
}

async fn due_checks(connection: &mut Connection, pace: &CheckPace) -> Result<DueBatch> {
    let select = SelectDueChecks {
        now: pace.now,
        stalled_since: pace.stalled_since,
        idle_since: pace.idle_since,
        reject: OnBusy::Reject.as_str(),
        pending: ApprovalState::Pending.as_str(),
        type_llm_complete: CheckpointType::LlmComplete.as_str(),
        row_limit: i64::from(pace.limit),
    };
    let rows: Vec<DueRow> = select.query_as()?.fetch_all(&mut *connection).await?;
    let has_more = rows.len() >= usize::try_from(pace.limit).unwrap_or(usize::MAX);
    let (stalled, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.has_stalled);
    let others: Vec<_> = others.into_iter().map(|row| row.check).collect();
    if !others.is_empty() {
        let conversation_ids = ids_of(&others);
        let remove = RemoveChecks {
            conversation_ids: &conversation_ids,
        };
        remove.query()?.execute(&mut *connection).await?;
    }
    let checks: Vec<_> = stalled.into_iter().map(|row| row.check).collect();
    set_due(connection, &checks, pace.again).await?;
    Ok(DueBatch { checks, has_more })
}

async fn set_due(
    connection: &mut Connection,
    checks: &[DueCheck],
    due_at: DateTime<Utc>,
) -> Result<()> {
    if checks.is_empty() {
        return Ok(());
    }
    let conversation_ids = ids_of(checks);
    let set = SetDue {
        due_at,
        conversation_ids: &conversation_ids,
    };
    set.query()?.execute(connection).await?;
    Ok(())
}

fn ids_of(checks: &[DueCheck]) -> Vec<String> {
    let ids = checks.iter().map(|check| check.conversation_id.clone());
    ids.collect()
}

async fn unfinished(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<Option<Unfinished>> {
    let select = UnfinishedConversation { conversation_id };
    let conversation: Option<Conversation> =
        select.query_as()?.fetch_optional(&mut *connection).await?;
    let select = SelectUnfinishedTurn { conversation_id };
    let turn: Option<TurnRow> = select.query_as()?.fetch_optional(&mut *connection).await?;
    let select = WaitingMessages {
        conversation_id,
        row_limit: i64::try_from(MAX_QUEUED_MESSAGES).unwrap_or(i64::MAX),
    };
    let waiting: Vec<WaitingMessage> = select.query_as()?.fetch_all(&mut *connection).await?;
    let Some(conversation) = conversation.filter(|_| turn.is_some() || !waiting.is_empty()) else {
        let conversation_ids = [conversation_id.to_owned()];
        let remove = RemoveChecks {
            conversation_ids: &conversation_ids,
        };
        remove.query()?.execute(connection).await?;
        return Ok(None);
    };
    let select = SelectCheckNote { conversation_id };
    let noted = select.query_as()?.fetch_optional(connection).await?;
    let (turn, cancel_reason) = turn.map(|row| (row.turn, row.cancel_reason)).unzip();
    Ok(Some(Unfinished {
        conversation,
        turn: turn.map(UnfinishedTurn::from),
        cancel_reason: cancel_reason.flatten(),
        waiting,
        noted: noted.unwrap_or_default(),
    }))
}
