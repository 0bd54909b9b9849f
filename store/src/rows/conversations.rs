//! Rows of events, and rows with the state of a conversation.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use everturn_proto::{Json, LogId, event::Event, words::AgentExecutionStatus};
use sqlx::{FromRow, types::Json as Column};

use crate::{
    api::{ConversationHead, QueuedMessage, Result, ResumePoint, TakenBy, UnfinishedTurn},
    columns::MaybeNumber,
    error::StoreError,
};

#[derive(FromRow)]
pub(crate) struct EventRow {
    id: String,
    message_id: String,
    event_type: String,
    event_data: Column<Json>,
    #[sqlx(try_from = "i64")]
    sequence_number: u32,
    created_at: DateTime<Utc>,
    /// The newest generation of every running agent execution. Only the first row of a page has these generations.
    pub(crate) generations: Option<Column<BTreeMap<String, u32>>>,
}

impl EventRow {
    /// Returns the row as an event of the conversation.
    pub(crate) fn into_event(self, conversation_id: &str) -> Event {
        Event {
            id: self.id,
            conversation_id: conversation_id.to_owned(),
            message_id: self.message_id,
            event_type: self.event_type,
            event_data: Some(self.event_data.0),
            sequence_number: self.sequence_number,
            created_at: self.created_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        }
    }
}

/// The parent call of a sub-agent, or the input and the template of the title of an approved call.
#[derive(FromRow)]
pub(crate) struct LinkRow {
    pub(crate) id: String,
    pub(crate) call_id: Option<String>,
    pub(crate) tool_input: Option<Column<Json>>,
    pub(crate) title_template: Option<String>,
}

#[derive(FromRow)]
pub(crate) struct StatusRow {
    #[sqlx(try_from = "String")]
    log_id: LogId,
    #[sqlx(try_from = "i64")]
    last_sequence: u32,
    running_message_id: Option<String>,
    running_model: Option<String>,
    queued_message_id: Option<String>,
}

impl From<StatusRow> for ConversationHead {
    fn from(row: StatusRow) -> Self {
        let current_message_id = row.running_message_id.or(row.queued_message_id);
        Self {
            log_id: row.log_id,
            is_running: current_message_id.is_some(),
            last_sequence: row.last_sequence,
            current_message_id,
            model: row.running_model,
        }
    }
}

/// A stored message, with the turn that took the message.
#[derive(FromRow)]
pub(crate) struct QueuedRow {
    id: String,
    has_this_content: bool,
    has_others: bool,
    turn_message_id: Option<String>,
    turn_status: Option<String>,
}

impl QueuedRow {
    /// Returns the stored message for a call that repeats it under the client's id.
    ///
    /// # Errors
    ///
    /// The client used one id twice by mistake. The second message must not vanish in silence.
    pub(crate) fn repeated(self, client_message_id: Option<&str>) -> Result<QueuedMessage> {
        if !self.has_this_content {
            let client_message_id = client_message_id.map_or(self.id, str::to_owned);
            return Err(StoreError::OtherContent { client_message_id });
        }
        Ok(QueuedMessage {
            message_id: self.id.clone(),
            is_new: false,
            has_others: self.has_others,
            turn: self.taken_by(),
        })
    }

    fn taken_by(self) -> Option<TakenBy> {
        let status = self.turn_status.map(AgentExecutionStatus::from);
        self.turn_message_id.map(|message_id| TakenBy {
            message_id,
            is_running: status == Some(AgentExecutionStatus::Running),
        })
    }
}

/// A turn that has not ended.
#[derive(FromRow)]
pub(crate) struct UnfinishedTurnRow {
    message_id: String,
    #[sqlx(try_from = "MaybeNumber")]
    checkpoint_step: Option<u32>,
}

impl From<UnfinishedTurnRow> for UnfinishedTurn {
    fn from(row: UnfinishedTurnRow) -> Self {
        Self {
            message_id: row.message_id,
            checkpoint_step: row.checkpoint_step,
        }
    }
}

/// A waiting message, beside the conversation's unfinished turn. Either may be missing.
#[derive(FromRow)]
pub(crate) struct ResumeRow {
    running_message_id: Option<String>,
    #[sqlx(try_from = "MaybeNumber")]
    checkpoint_step: Option<u32>,
    has_begun: bool,
    waiting_id: Option<String>,
}

/// Joins the rows of one conversation; `None` without rows.
pub(crate) fn resume_point(rows: Vec<ResumeRow>) -> Option<ResumePoint> {
    let first = rows.first()?;
    let message_id = first.running_message_id.clone();
    let turn = message_id.map(|message_id| UnfinishedTurn {
        message_id,
        checkpoint_step: first.checkpoint_step,
    });
    Some(ResumePoint {
        turn,
        has_begun: first.has_begun,
        waiting: rows.into_iter().filter_map(|row| row.waiting_id).collect(),
    })
}
