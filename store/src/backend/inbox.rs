//! The inbox of a conversation: the waiting messages with their order and policies, and the cancels of messages.
//!
//! The store is the only inbox. A gateway writes what a person wants in the transaction before its answer, and a run of
//! the workflow reads the inbox when somebody rings.

use everturn_proto::{
    limits::MAX_QUEUED_MESSAGES,
    turn::{Cancel, Inbox, ReadInboxRequest, Submit},
    words::OnBusy,
};
use sqlx::FromRow;

use super::{
    Connection,
    lock::lock_conversation,
    messages::{INTERRUPTED, insert_queued, interrupt_waiting, note_cancel, queue_message},
    statement::Statement as _,
    statements::messages::{AroundTurn as SelectAroundTurn, CancelReason, Inbox as SelectInbox},
};
use crate::{
    api::{Access, NewMessage, Result},
    columns::now,
};

/// A waiting message, in the order of the turns.
#[derive(FromRow)]
struct WaitingRow {
    id: String,
    #[sqlx(try_from = "String")]
    on_busy: OnBusy,
    cancel_reason: Option<String>,
}

impl WaitingRow {
    fn is_cancelled(&self) -> bool {
        self.cancel_reason.is_some()
    }
}

/// What a run has to know beside the waiting messages.
#[derive(FromRow)]
struct AroundTurn {
    /// Why the turn of the run must end.
    cancel_reason: Option<String>,
    /// The message of another running turn.
    running_message: Option<String>,
}

/// Returns true when signals brought texts or cancels that the store does not have yet.
pub(super) fn has_contents(request: &ReadInboxRequest) -> bool {
    !(request.submits.is_empty() && request.cancels.is_empty())
}

/// Stores the contents of signals under the conversation's lock, and reads the inbox for a run.
pub(super) async fn store_and_read(
    connection: &mut Connection,
    request: &ReadInboxRequest,
) -> Result<Inbox> {
    let id = &request.conversation_id;
    // A removed conversation takes no message.
    let Some(conversation) = lock_conversation(connection, id).await? else {
        return Ok(Inbox::default());
    };
    let access = Access::tenant(conversation.tenant_id);
    for submit in &request.submits {
        store_submit(connection, &access, id, submit).await?;
    }
    for Cancel { message_id, reason } in &request.cancels {
        if let Some(message_id) = message_id {
            note_cancel(connection, id, message_id, reason).await?;
        }
    }
    read(connection, request).await
}

/// Reads the inbox for a run, without a lock: every writer commits its rows before it rings.
pub(super) async fn read(connection: &mut Connection, request: &ReadInboxRequest) -> Result<Inbox> {
    let id = &request.conversation_id;
    let select = SelectInbox {
        conversation_id: id,
        reject: OnBusy::Reject.as_str(),
        interrupt: OnBusy::Interrupt.as_str(),
        row_limit: i64::try_from(MAX_QUEUED_MESSAGES).unwrap_or(i64::MAX),
    };
    let waiting: Vec<WaitingRow> = select.query_as()?.fetch_all(&mut *connection).await?;
    let Some(message_id) = &request.message_id else {
        return Ok(inbox(None, None, &waiting));
    };
    let select = SelectAroundTurn {
        conversation_id: id,
        message_id,
    };
    let around: AroundTurn = select.query_as()?.fetch_one(connection).await?;
    let interrupts = |row: &WaitingRow| row.on_busy == OnBusy::Interrupt && !row.is_cancelled();
    let is_interrupted = waiting.iter().any(interrupts);
    let reason = around.cancel_reason;
    let reason = reason.or_else(|| is_interrupted.then(|| INTERRUPTED.to_owned()));
    Ok(inbox(reason, around.running_message, &waiting))
}

/// Returns the reason of a message's cancel.
pub(super) async fn cancel_reason(
    connection: &mut Connection,
    conversation_id: &str,
    message_id: &str,
) -> Result<Option<String>> {
    let select = CancelReason {
        conversation_id,
        message_id,
    };
    let reason: Option<Option<String>> = select.query_scalar()?.fetch_optional(connection).await?;
    Ok(reason.flatten())
}

/// Makes the inbox. The running message is the next one, before the waiting messages.
fn inbox(cancel_reason: Option<String>, running: Option<String>, waiting: &[WaitingRow]) -> Inbox {
    let next_runs = running.is_some();
    let count = waiting.len() + usize::from(next_runs);
    // The turn of a cancelled message reports the cancel, so the message does not join another turn.
    let joins = |row: &&WaitingRow| row.on_busy == OnBusy::Steer && !row.is_cancelled();
    let steers = waiting.iter().filter(joins).map(|row| row.id.clone());
    Inbox {
        cancel_reason,
        steers: steers.collect(),
        next: running.or_else(|| waiting.first().map(|row| row.id.clone())),
        waiting: u32::try_from(count).unwrap_or(u32::MAX),
        next_runs,
    }
}

/// Stores a message that somebody typed into a signal. A known message and a message beyond the limit change nothing,
/// because a signal has no answer.
async fn store_submit(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
    submit: &Submit,
) -> Result<()> {
    let (Some(message_id), Some(content)) = (&submit.message_id, &submit.content) else {
        return Ok(());
    };
    let on_busy = match submit.on_busy.as_deref().map(OnBusy::from) {
        Some(on_busy @ (OnBusy::Steer | OnBusy::Interrupt)) => on_busy,
        Some(OnBusy::Queue | OnBusy::Reject | OnBusy::Unknown(_)) | None => OnBusy::Queue,
    };
    let new = NewMessage {
        conversation_id: conversation_id.to_owned(),
        message_id: message_id.clone(),
        client_message_id: None,
        content: content.clone(),
        sent_by: None,
        model: None,
        names_model: false,
        attachments: Vec::new(),
        max_attached_bytes: 0,
        on_busy,
        max_queued: u32::try_from(MAX_QUEUED_MESSAGES).unwrap_or(u32::MAX),
        max_turns: None,
        max_turns_of_owner: None,
    };
    let insert = queue_message(&new, &[], new.max_queued, access, now());
    let inserted = insert_queued(connection, insert, conversation_id).await?;
    if inserted.is_some() {
        interrupt_waiting(connection, &new).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, on_busy: OnBusy, cancel_reason: Option<&str>) -> WaitingRow {
        WaitingRow {
            id: id.to_owned(),
            on_busy,
            cancel_reason: cancel_reason.map(str::to_owned),
        }
    }

    #[test]
    fn a_cancelled_steer_has_a_turn_of_its_own() {
        let waiting = [
            row("s1", OnBusy::Steer, Some("no longer needed")),
            row("q", OnBusy::Queue, None),
            row("s2", OnBusy::Steer, None),
        ];
        let inbox = inbox(None, None, &waiting);
        assert_eq!(inbox.steers, ["s2"]);
        assert_eq!((inbox.next.as_deref(), inbox.waiting), (Some("s1"), 3));
    }
}
