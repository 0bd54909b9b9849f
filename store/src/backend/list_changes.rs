//! The versions of lists of conversations (the table `list_changes`). A transaction that changes a conversation in lists
//! adds a change to the list of the tenant and to the list of the owner. A gateway compares versions, and reads only the
//! lists with another version.
//!
//! Rows of `list_changes` are locked after the row of the conversation ("Locks" in `mod.rs`). The row of the conversation
//! must still exist, with its tenant, because the statements find tenant and owner there.
//!
//! Must not be here: the decision whether a batch changes lists ([`Batch::changes_lists`]).

use chrono::{DateTime, Utc};

use super::{
    Connection,
    budgets::slot,
    dialect::{Parts, WRITES_IN_PARTS},
    statement::Statement as _,
    statements::list_changes::{Forget, Note, NoteRemoved},
};
use crate::{api::Result, batch::Batch, columns::now};

/// The parameters of a change, for a statement of PostgreSQL that notes its change itself.
pub(crate) struct Change {
    /// The row of the tenant's list that counts the change.
    pub(crate) slot: i64,
    /// The version of a list without a row, in milliseconds since 1970. A later row of the same list has another version.
    pub(crate) first_version: i64,
}

impl Change {
    /// Makes the change of a conversation. The conversation decides the slot, so that the turns of a tenant seldom wait
    /// for each other.
    pub(crate) fn of(conversation_id: &str, now: DateTime<Utc>) -> Self {
        Self {
            slot: slot(conversation_id),
            first_version: now.timestamp_millis(),
        }
    }
}

/// Adds the change of a batch, if the batch changes lists. The caller adds the change as the last part: PostgreSQL runs
/// the parts from the last to the first, so the rows of `list_changes` are locked before the rows of the other parts.
pub(crate) fn note_batch(
    parts: &mut Parts,
    conversation_id: &str,
    batch: &Batch,
    now: DateTime<Utc>,
) {
    if batch.changes_lists() {
        add(parts, conversation_id, now);
    }
}

/// Notes a change of the conversation in a statement of its own.
pub(super) async fn note(connection: &mut Connection, conversation_id: &str) -> Result<()> {
    let mut parts = Parts::default();
    add(&mut parts, conversation_id, now());
    parts.execute(connection).await
}

/// Notes a change of a statement that notes the change itself in PostgreSQL.
pub(super) async fn note_beside(connection: &mut Connection, conversation_id: &str) -> Result<()> {
    if WRITES_IN_PARTS {
        return Ok(());
    }
    note(connection, conversation_id).await
}

/// Notes that conversations leave the lists, and returns the changed lists. Must run while the rows of the conversations
/// exist. A hidden conversation is in no list any more, so its last row goes without a change.
pub(super) async fn note_removed(
    connection: &mut Connection,
    conversation_ids: &[String],
) -> Result<ChangedLists> {
    let first = conversation_ids.first().map(String::as_str);
    let Change {
        slot,
        first_version,
    } = Change::of(first.unwrap_or_default(), now());
    let note = NoteRemoved {
        conversation_ids,
        slot,
        first_version,
    };
    let lists = note.query_as()?.fetch_all(connection).await?;
    Ok(ChangedLists(lists))
}

/// The changed lists after conversations have left: tenant and owner of each list. The list of a tenant has an empty owner.
pub(super) struct ChangedLists(Vec<(String, String)>);

impl ChangedLists {
    /// Removes the versions of owners without a conversation. The rows of tenants stay, at most 16 for each tenant. Must
    /// run after the conversations have left the lists.
    pub(super) async fn forget_empty(self, connection: &mut Connection) -> Result<()> {
        let of_owners = self.0.iter().filter(|(_, owner)| !owner.is_empty());
        for (tenant_id, owner) in of_owners {
            let forget = Forget { tenant_id, owner };
            forget.query()?.execute(&mut *connection).await?;
        }
        Ok(())
    }
}

fn add(parts: &mut Parts, conversation_id: &str, now: DateTime<Utc>) {
    let Change {
        slot,
        first_version,
    } = Change::of(conversation_id, now);
    parts.add(Note {
        conversation_id,
        slot,
        first_version,
    });
}
