//! Retries of failed turns. A retry is a message of its own, without a text: its turn begins from the context that the
//! failed turn has left. The caller of each function holds the conversation's lock.

use everturn_proto::{ids, words::AgentExecutionStatus};
use serde::Deserialize;
use sqlx::FromRow;

use super::{
    Connection,
    statement::Statement as _,
    statements::messages::{LeaveOutText, NewestTurn, StoredRetry},
};
use crate::{
    api::{NewMessage, QueuedMessage, Result, RetryTurn},
    error::{NotRetryable, StoreError},
    rows::conversations::QueuedRow,
};

/// The turn that saved the last event of a conversation.
#[derive(FromRow)]
struct Newest {
    agent_execution_id: String,
    message_id: String,
    #[sqlx(try_from = "String")]
    status: AgentExecutionStatus,
    /// The message that began the turn, or that began the first of the retried turns.
    begun_by: String,
    /// The chosen model of the turn.
    model: Option<String>,
    #[sqlx(json)]
    last_event: LastEvent,
    has_waiting: bool,
}

#[derive(Deserialize)]
struct LastEvent {
    /// The step of the event; of an end, the last step.
    #[serde(default)]
    step: u32,
}

impl Newest {
    fn has_failed(&self) -> bool {
        self.status == AgentExecutionStatus::Failed
    }

    /// Returns the id of the turn's retry.
    fn retry_id(&self) -> String {
        ids::retry_message_id(&self.agent_execution_id)
    }
}

async fn newest_turn(connection: &mut Connection, conversation_id: &str) -> Result<Option<Newest>> {
    let select = NewestTurn { conversation_id };
    Ok(select.query_as()?.fetch_optional(connection).await?)
}

/// The retry of a turn.
pub(super) enum Retry {
    /// An earlier call has stored the retry.
    Stored(QueuedMessage),
    /// The message of the retry, for the insert.
    New(NewMessage),
}

/// Returns the stored retry of a turn, or otherwise the message to store, if the turn can be retried.
pub(super) async fn find_retry(connection: &mut Connection, retry: &RetryTurn) -> Result<Retry> {
    let id = &retry.message.conversation_id;
    let newest = newest_turn(connection, id).await?;
    let failed = match (&retry.failed_message_id, &newest) {
        (Some(message_id), _) => Some(ids::root_agent_execution_id(id, message_id)),
        (None, Some(newest)) => Some(newest.agent_execution_id.clone()),
        (None, None) => None,
    };
    let retry_id = failed.as_deref().map(ids::retry_message_id);
    if let Some(stored) = stored_retry(connection, &retry.message, retry_id).await? {
        return Ok(Retry::Stored(stored));
    }
    let newest = newest.ok_or(StoreError::NotRetryable(NotRetryable::NoTurn))?;
    if failed.as_deref() != Some(newest.agent_execution_id.as_str()) {
        return Err(StoreError::NotRetryable(NotRetryable::NotNewest));
    }
    if !newest.has_failed() {
        return Err(StoreError::NotRetryable(NotRetryable::NotFailed));
    }
    if newest.has_waiting {
        return Err(StoreError::NotRetryable(NotRetryable::MessagesWait));
    }
    Ok(Retry::New(NewMessage {
        message_id: newest.retry_id(),
        content: newest.begun_by,
        model: newest.model,
        ..retry.message.clone()
    }))
}

/// Returns the retry that an earlier call has stored: under the client's id, or for the same failed turn.
async fn stored_retry(
    connection: &mut Connection,
    new: &NewMessage,
    retry_id: Option<String>,
) -> Result<Option<QueuedMessage>> {
    let select = StoredRetry {
        conversation_id: &new.conversation_id,
        message_id: retry_id.as_deref().unwrap_or_default(),
        client_message_id: new.client_message_id.as_deref(),
    };
    let stored: Option<QueuedRow> = select.query_as()?.fetch_optional(connection).await?;
    let repeated = stored.map(|stored| stored.repeated(new.client_message_id.as_deref()));
    repeated.transpose()
}

/// Prepares the context for the turn of a retry: the text of the failed step leaves the context, because the step is
/// made again. Returns false when another turn has begun since the failure.
pub(super) async fn begin_retry(
    connection: &mut Connection,
    conversation_id: &str,
    message_id: &str,
) -> Result<bool> {
    let newest = newest_turn(connection, conversation_id).await?;
    let is_retried = |newest: &Newest| newest.has_failed() && newest.retry_id() == message_id;
    let Some(failed) = newest.filter(is_retried) else {
        return Ok(false);
    };
    let agent_execution_id = &failed.agent_execution_id;
    let text = LeaveOutText {
        conversation_id,
        message_id: &ids::assistant_message_id(agent_execution_id, failed.last_event.step),
        agent_execution_id,
    };
    text.query()?.execute(connection).await?;
    tracing::debug!(
        conversation_id,
        failed_message_id = failed.message_id,
        "a failed turn is retried"
    );
    Ok(true)
}
