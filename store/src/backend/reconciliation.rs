//! Unfinished conversations, and the schedule for the gateways' checks of them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{ids, limits::MAX_QUEUED_MESSAGES, turn::AgentDefinition};

use super::{
    Connection, Database, begin,
    statement::Statement as _,
    statements::reconciliation::{
        CheckNote as SelectCheckNote, DueChecks, NoteCheck, RemoveCheck, ScheduleChecks, SetDue,
        TakeTurn, UnfinishedConversation, UnfinishedTurn as SelectUnfinishedTurn, WaitingMessages,
    },
};
use crate::{
    api::{
        BeginTurn, CheckNote, CheckPace, Conversation, DayBudget, DueCheck, OnUnknownAgent,
        Reconciliation, Result, TurnFailure, Unfinished, UnfinishedTurn, WaitingMessage,
    },
    rows::conversations::UnfinishedTurnRow,
};

/// The most conversations added to the schedule at once. A long outage can leave many unfinished conversations, but
/// gateways check them one by one anyway.
const SCHEDULED_AT_ONCE: i64 = 10_000;

#[async_trait]
impl Reconciliation for Database {
    async fn due_checks(&self, pace: &CheckPace) -> Result<Vec<DueCheck>> {
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

async fn due_checks(connection: &mut Connection, pace: &CheckPace) -> Result<Vec<DueCheck>> {
    let take = TakeTurn {
        now: pace.now,
        asked_before: pace.asked_before,
    };
    let taken = take.query()?.fetch_all(&mut *connection).await?;
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    let schedule = ScheduleChecks {
        now: pace.now,
        stalled_since: pace.stalled_since,
        row_limit: SCHEDULED_AT_ONCE,
    };
    schedule.query()?.execute(&mut *connection).await?;
    let due = DueChecks {
        now: pace.now,
        row_limit: i64::from(pace.limit),
    };
    let due: Vec<DueCheck> = due.query_as()?.fetch_all(&mut *connection).await?;
    set_due(connection, &due, pace.again).await?;
    Ok(due)
}

async fn set_due(
    connection: &mut Connection,
    checks: &[DueCheck],
    due_at: DateTime<Utc>,
) -> Result<()> {
    let conversation_ids: Vec<_> = checks
        .iter()
        .map(|check| check.conversation_id.clone())
        .collect();
    let set = SetDue {
        due_at,
        conversation_ids: &conversation_ids,
    };
    set.query()?.execute(connection).await?;
    Ok(())
}

async fn unfinished(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<Option<Unfinished>> {
    let select = UnfinishedConversation { conversation_id };
    let conversation: Option<Conversation> =
        select.query_as()?.fetch_optional(&mut *connection).await?;
    let select = SelectUnfinishedTurn { conversation_id };
    let turn: Option<UnfinishedTurnRow> =
        select.query_as()?.fetch_optional(&mut *connection).await?;
    let select = WaitingMessages {
        conversation_id,
        row_limit: i64::try_from(MAX_QUEUED_MESSAGES).unwrap_or(i64::MAX),
    };
    let waiting: Vec<WaitingMessage> = select.query_as()?.fetch_all(&mut *connection).await?;
    let Some(conversation) = conversation.filter(|_| turn.is_some() || !waiting.is_empty()) else {
        let remove = RemoveCheck { conversation_id };
        remove.query()?.execute(connection).await?;
        return Ok(None);
    };
    let select = SelectCheckNote { conversation_id };
    let noted = select.query_as()?.fetch_optional(connection).await?;
    Ok(Some(Unfinished {
        conversation,
        turn: turn.map(UnfinishedTurn::from),
        waiting,
        noted: noted.unwrap_or_default(),
    }))
}
