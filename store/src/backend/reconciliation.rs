//! What has not ended, and the schedule by which gateways look at it.

use async_trait::async_trait;
use everturn_proto::{ids, limits::MAX_QUEUED_MESSAGES, turn::AgentDefinition};

use super::{Connection, Database, begin, sql::reconciliation as sql};
use crate::{
    api::{
        BeginTurn, CheckNote, CheckPace, Conversation, OnUnknownAgent, Reconciliation, Result,
        TurnFailure, Unfinished, UnfinishedTurn, WaitingMessage,
    },
    rows::conversations::UnfinishedTurnRow,
};

/// The most conversations that are added to the schedule at once: after a long outage there may be many, and they are
/// looked at one after the other all the same.
const SCHEDULED_AT_ONCE: i64 = 10_000;

#[async_trait]
impl Reconciliation for Database {
    async fn due_checks(&self, pace: &CheckPace) -> Result<Vec<String>> {
        self.transaction(async |connection| due_checks(connection, pace).await)
            .await
    }

    async fn unfinished(&self, conversation_id: &str) -> Result<Option<Unfinished>> {
        self.transaction(async |connection| unfinished(connection, conversation_id).await)
            .await
    }

    async fn note_check(&self, conversation_id: &str, note: &CheckNote) -> Result<()> {
        self.in_time(async {
            sqlx::query(sql::NOTE_CHECK)
                .bind(conversation_id)
                .bind(i64::from(note.starts))
                .bind(i64::from(note.last_sequence))
                .bind(note.signalled_until)
                .execute(&mut *self.single().await?)
                .await?;
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
            agent_execution_id: ids::root_execution_id(&conversation.id, message_id),
            // No model is asked, so the name is all there is to pin.
            agent: AgentDefinition::only_a_name(conversation.agent.clone()),
            on_unknown_agent: OnUnknownAgent::Begin,
            // No run asks: it is the conversation's own.
            epoch: None,
        };
        self.locking(&conversation.id, async |connection| {
            Box::pin(begin::fail_turn(connection, begin, failure)).await
        })
        .await
    }
}

async fn due_checks(connection: &mut Connection, pace: &CheckPace) -> Result<Vec<String>> {
    let taken: Vec<(i64,)> = sqlx::query_as(sql::TAKE_TURN)
        .bind(pace.now)
        .bind(pace.asked_before)
        .fetch_all(&mut *connection)
        .await?;
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query(sql::SCHEDULE_CHECKS)
        .bind(pace.now)
        .bind(pace.stalled_since)
        .bind(SCHEDULED_AT_ONCE)
        .execute(&mut *connection)
        .await?;
    let due = sqlx::query_scalar(sql::TAKE_CHECKS)
        .bind(pace.now)
        .bind(pace.again)
        .bind(i64::from(pace.limit));
    Ok(due.fetch_all(connection).await?)
}

async fn unfinished(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<Option<Unfinished>> {
    let conversation: Option<Conversation> = sqlx::query_as(sql::UNFINISHED_CONVERSATION)
        .bind(conversation_id)
        .fetch_optional(&mut *connection)
        .await?;
    let turn: Option<UnfinishedTurnRow> = sqlx::query_as(sql::UNFINISHED_TURN)
        .bind(conversation_id)
        .fetch_optional(&mut *connection)
        .await?;
    let waiting: Vec<WaitingMessage> = sqlx::query_as(sql::WAITING_MESSAGES)
        .bind(conversation_id)
        .bind(i64::try_from(MAX_QUEUED_MESSAGES).unwrap_or(i64::MAX))
        .fetch_all(&mut *connection)
        .await?;
    let Some(conversation) = conversation.filter(|_| turn.is_some() || !waiting.is_empty()) else {
        sqlx::query(sql::REMOVE_CHECK)
            .bind(conversation_id)
            .execute(connection)
            .await?;
        return Ok(None);
    };
    let noted = sqlx::query_as(sql::CHECK_NOTE)
        .bind(conversation_id)
        .fetch_optional(connection)
        .await?;
    Ok(Some(Unfinished {
        conversation,
        turn: turn.map(UnfinishedTurn::from),
        waiting,
        noted: noted.unwrap_or_default(),
    }))
}
