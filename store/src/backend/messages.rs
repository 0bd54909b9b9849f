//! Messages that wait for a turn. Both transactions lock the conversation first.

use std::num::NonZeroU32;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{
    event::Attachment,
    words::{MessageRole, OnBusy},
};
use sqlx::types::Json as Column;

use super::{
    Connection, Database, key_of_caller,
    list_changes::{self, Change},
    lock::lock_visible_conversation,
    missing,
    retry::{Retry, find_retry},
    statement::Statement,
    statements::{
        blobs::{Attach, Detach},
        messages::{
            self, CancelMessage, CountQueued, CountTurnsOfOwner, InterruptWaiting, QueueMessage,
            WithdrawMessage,
        },
    },
};
use crate::{
    api::{
        Access, Blob, MessageCancel, MessageQueue, NewMessage, QueuedMessage, Result, RetryTurn,
    },
    columns::now,
    error::{Missing, StoreError, TurnsOf},
    rows::conversations::QueuedRow,
};

/// The reason of a cancel by an interrupting message.
pub(super) const INTERRUPTED: &str = "interrupted by a newer message";

#[async_trait]
impl MessageQueue for Database {
    async fn queue_message(&self, access: &Access, new: NewMessage) -> Result<QueuedMessage> {
        if let Some(queued) = self.queue_as_read(access, &new).await? {
            return Ok(queued);
        }
        let key = key_of_caller(access, &new.conversation_id);
        self.locking(&key, async |connection| {
            queue(connection, access, &new).await
        })
        .await
    }

    async fn retry_turn(&self, access: &Access, retry: RetryTurn) -> Result<QueuedMessage> {
        let key = key_of_caller(access, &retry.message.conversation_id);
        self.locking(&key, async |connection| {
            retry_turn(connection, access, &retry).await
        })
        .await
    }

    async fn cancel_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
        reason: &str,
    ) -> Result<MessageCancel> {
        let key = key_of_caller(access, conversation_id);
        self.locking(&key, async |connection| {
            cancel_message(connection, access, conversation_id, message_id, reason).await
        })
        .await
    }

    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool> {
        let key = key_of_caller(access, conversation_id);
        self.locking(&key, async |connection| {
            withdraw(connection, access, conversation_id, message_id).await
        })
        .await
    }
}

/// Stores a waiting message. The conversation's lock makes the count of waiting messages exact.
async fn queue(
    connection: &mut Connection,
    access: &Access,
    new: &NewMessage,
) -> Result<QueuedMessage> {
    let id = &new.conversation_id;
    if !lock_visible_conversation(connection, access, id).await? {
        return Err(StoreError::not_found(Missing::Conversation, id));
    }
    let attached = attach(connection, access, new).await?;
    let insert = queue_message(new, &attached, new.max_queued, access, now());
    let inserted = insert_queued(connection, insert, id).await?;
    if let Some(has_others) = inserted {
        interrupt_waiting(connection, new).await?;
        return Ok(QueuedMessage::new(&new.message_id, has_others));
    }
    let queued = messages::QueuedMessage {
        conversation_id: &new.conversation_id,
        message_id: &new.message_id,
        client_message_id: new.client_message_id.as_deref(),
        content: &new.content,
        reject: OnBusy::Reject.as_str(),
        attachments: &attached,
        chosen_model: new.model.as_deref().filter(|_| new.names_model),
    };
    let stored: Option<QueuedRow> = queued.query_as()?.fetch_optional(&mut *connection).await?;
    let Some(stored) = stored else {
        return Err(refusal(connection, access, new).await?);
    };
    stored.repeated(new.client_message_id.as_deref())
}

/// Ends the older waiting messages that interrupt, if the new message interrupts. Their turns begin and end at once, so
/// readers learn of the end.
pub(super) async fn interrupt_waiting(connection: &mut Connection, new: &NewMessage) -> Result<()> {
    if new.on_busy != OnBusy::Interrupt {
        return Ok(());
    }
    let interrupt = InterruptWaiting {
        conversation_id: &new.conversation_id,
        message_id: &new.message_id,
        interrupt: OnBusy::Interrupt.as_str(),
        reason: INTERRUPTED,
    };
    interrupt.query()?.execute(connection).await?;
    Ok(())
}

/// Notes the cancel of a message, for a caller.
async fn cancel_message(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
    message_id: &str,
    reason: &str,
) -> Result<MessageCancel> {
    if !lock_visible_conversation(connection, access, conversation_id).await? {
        return Ok(MessageCancel::Ended);
    }
    note_cancel(connection, conversation_id, message_id, reason).await
}

pub(super) async fn note_cancel(
    connection: &mut Connection,
    conversation_id: &str,
    message_id: &str,
    reason: &str,
) -> Result<MessageCancel> {
    let cancel = CancelMessage {
        conversation_id,
        message_id,
        reason,
    };
    let is_waiting: Option<bool> = cancel.query_scalar()?.fetch_optional(connection).await?;
    Ok(match is_waiting {
        Some(true) => MessageCancel::Waiting,
        Some(false) => MessageCancel::Running,
        None => MessageCancel::Ended,
    })
}

/// Inserts a waiting message, under the conversation's lock. Returns whether another turn or message of the conversation
/// is unfinished; `None` when the statement has inserted no message.
pub(super) async fn insert_queued(
    connection: &mut Connection,
    insert: impl Statement,
    conversation_id: &str,
) -> Result<Option<bool>> {
    let inserted: Option<bool> = insert
        .query_scalar()?
        .fetch_optional(&mut *connection)
        .await
        .map_err(missing(Missing::Conversation, conversation_id))?;
    if inserted.is_some() {
        list_changes::note_beside(connection, conversation_id).await?;
    }
    Ok(inserted)
}

/// Returns the insert of a waiting message. `max_queued` is the limit for waiting messages in this call.
pub(crate) fn queue_message<'a>(
    new: &'a NewMessage,
    attachments: &'a [Attachment],
    max_queued: u32,
    access: &'a Access,
    now: DateTime<Utc>,
) -> QueueMessage<'a, &'a [Attachment]> {
    let Change {
        slot,
        first_version,
    } = Change::of(&new.conversation_id, now);
    QueueMessage {
        conversation_id: &new.conversation_id,
        message_id: &new.message_id,
        client_message_id: new.client_message_id.as_deref(),
        content: &new.content,
        now,
        max_queued: i64::from(max_queued),
        tenant_id: &access.tenant_id,
        max_turns: most(new.max_turns),
        on_busy: new.on_busy.as_str(),
        reject: OnBusy::Reject.as_str(),
        owner_id: access.owner_id.as_deref(),
        attachments,
        max_turns_of_owner: most(new.max_turns_of_owner),
        sent_by: new.sent_by.as_deref(),
        model: new.model.as_deref(),
        role: MessageRole::User.as_str(),
        slot,
        first_version,
    }
}

/// Stores the retry of a failed turn as a waiting message. A repeated call returns the stored retry.
async fn retry_turn(
    connection: &mut Connection,
    access: &Access,
    retry: &RetryTurn,
) -> Result<QueuedMessage> {
    let id = &retry.message.conversation_id;
    if !lock_visible_conversation(connection, access, id).await? {
        return Err(StoreError::not_found(Missing::Conversation, id));
    }
    let new = match find_retry(connection, retry).await? {
        Retry::Stored(stored) => return Ok(stored),
        Retry::New(new) => new,
    };
    let insert = QueueMessage {
        role: MessageRole::Retry.as_str(),
        ..queue_message(&new, &[], new.max_queued, access, now())
    };
    match insert_queued(connection, insert, id).await? {
        Some(has_others) => Ok(QueuedMessage::new(&new.message_id, has_others)),
        None => Err(refusal(connection, access, &new).await?),
    }
}

/// Returns the limit as a parameter, 0 for no limit.
fn most(limit: Option<NonZeroU32>) -> i64 {
    limit.map_or(0, |most| i64::from(most.get()))
}

/// Returns the error for a message that was not stored. The error names the limit that the message exceeds.
async fn refusal(
    connection: &mut Connection,
    access: &Access,
    new: &NewMessage,
) -> Result<StoreError> {
    let too_many = |of, limit: NonZeroU32| StoreError::TooManyTurns {
        limit: limit.get(),
        of,
    };
    let count = CountQueued {
        conversation_id: &new.conversation_id,
    };
    let queued: i64 = count.query_scalar()?.fetch_one(&mut *connection).await?;
    if queued < i64::from(new.max_queued) {
        if let Some(limit) = new.max_turns_of_owner {
            let count = CountTurnsOfOwner {
                conversation_id: &new.conversation_id,
                tenant_id: &access.tenant_id,
            };
            let turns: i64 = count.query_scalar()?.fetch_one(connection).await?;
            if turns >= i64::from(limit.get()) {
                return Ok(too_many(TurnsOf::Owner, limit));
            }
        }
        if let Some(limit) = new.max_turns {
            return Ok(too_many(TurnsOf::Tenant, limit));
        }
    }
    Ok(StoreError::QueueFull {
        limit: new.max_queued,
    })
}

/// Removes a waiting message. The conversation's lock keeps a turn from taking the message meanwhile.
async fn withdraw(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
    message_id: &str,
) -> Result<bool> {
    if !lock_visible_conversation(connection, access, conversation_id).await? {
        return Ok(false);
    }
    let withdraw = WithdrawMessage {
        conversation_id,
        message_id,
    };
    let query = withdraw.query_scalar()?;
    let withdrawn: Option<Column<Vec<Attachment>>> = query.fetch_optional(&mut *connection).await?;
    let Some(Column(attachments)) = withdrawn else {
        return Ok(false);
    };
    list_changes::note(connection, conversation_id).await?;
    if !attachments.is_empty() {
        let ids: Vec<String> = attachments.into_iter().map(|it| it.blob_id).collect();
        let detach = Detach {
            conversation_id,
            blob_ids: &ids,
        };
        detach.query()?.execute(connection).await?;
    }
    Ok(true)
}

/// Attaches a message's blobs to its conversation. An error of the call rolls the attachment back.
async fn attach(
    connection: &mut Connection,
    access: &Access,
    new: &NewMessage,
) -> Result<Vec<Attachment>> {
    if new.attachments.is_empty() {
        return Ok(Vec::new());
    }
    let attach = Attach {
        conversation_id: &new.conversation_id,
        tenant_id: &access.tenant_id,
        owner_id: access.owner_id.as_deref(),
        blob_ids: &new.attachments,
    };
    let blobs: Vec<Blob> = attach.query_as()?.fetch_all(connection).await?;
    let of_id = |id: &String| {
        let blob = blobs.iter().find(|blob| blob.id == *id);
        blob.map(Blob::attachment)
            .ok_or_else(|| StoreError::not_found(Missing::Blob, id))
    };
    let attachments = new.attachments.iter().map(of_id);
    let attachments = attachments.collect::<Result<Vec<_>>>()?;
    let bytes: u64 = attachments.iter().map(|it| u64::from(it.bytes)).sum();
    if bytes > new.max_attached_bytes {
        return Err(StoreError::AttachmentsTooLarge {
            limit: new.max_attached_bytes,
        });
    }
    Ok(attachments)
}
