//! The removal of conversations with their rows, for expired and for deleted conversations.
//!
//! A conversation of usual size is removed in one transaction. A large conversation is hidden in one transaction
//! ([`hide`]): its row stays with an empty tenant, which no caller has, and with an epoch that no run has. Therefore
//! nobody reads or changes the conversation any more, and no new conversation takes the id. Then any process removes the
//! rows page by page ([`remove_rest`]), and the row of the conversation last. After a crash, the row tells what is left.

use everturn_proto::words::AgentExecutionStatus;
use sqlx::FromRow;

use super::{
    Connection, budgets, list_changes,
    lock::lock_running,
    statement::Statement,
    statements::{
        blobs::{NoteObjects as NoteObjectsOf, RemoveBlobs as RemoveBlobsOf},
        removal::{
            BlobsPage, EndRunning, HideConversation, LockExecutions, LockHidden, NoteObjects,
            RemoveBlobs, RemoveBudgets, RemoveCheckpoints, RemoveCheckpointsPage,
            RemoveContextCuts, RemoveContextCutsPage, RemoveConversations, RemoveEvents,
            RemoveEventsPage, RemoveExecutions, RemoveExecutionsPage, RemoveGrants, RemoveMessages,
            RemoveMessagesPage, RemovePlans, RemovePlansPage, RemoveQueued, RemoveTools,
            RemoveToolsPage, RemoveTraces, RemoveTracesPage,
        },
    },
};
use crate::{
    api::{Removed, Result, StepKey},
    columns::now,
};

/// The most events of the conversations that one transaction removes. A larger conversation is hidden. Removing 10 000
/// events takes a few hundred milliseconds, and SQLite's other writers wait meanwhile.
pub(super) const MAX_EVENTS: i64 = 10_000;

/// The most removed blobs of a transaction. A blob in the database may have megabytes.
const MAX_BLOBS: i64 = 100;

#[derive(FromRow)]
struct LockedRow {
    id: String,
    conversation_id: String,
    message_id: String,
    is_running: bool,
}

impl From<LockedRow> for StepKey {
    fn from(row: LockedRow) -> Self {
        Self {
            conversation_id: row.conversation_id,
            message_id: row.message_id,
            agent_execution_id: row.id,
            step: 0,
            epoch: None,
        }
    }
}

/// Removes a conversation, or hides a conversation with too many events. The caller has locked the conversation.
pub(super) async fn remove_or_hide(
    connection: &mut Connection,
    conversation_id: &str,
    events: i64,
) -> Result<()> {
    if events > MAX_EVENTS {
        return hide(connection, conversation_id).await;
    }
    remove(connection, &[conversation_id.to_owned()]).await?;
    Ok(())
}

/// Removes conversations. The caller has locked them.
pub(super) async fn remove(
    connection: &mut Connection,
    conversation_ids: &[String],
) -> Result<Removed> {
    // A worker that was thought dead may still write. With this order of locks, the worker's transaction and the
    // removal never wait for each other ("Locks" in `backend/mod.rs`).
    delete(connection, RemoveTools { conversation_ids }).await?;
    let lock = LockExecutions { conversation_ids };
    let locked: Vec<LockedRow> = lock.query_as()?.fetch_all(&mut *connection).await?;
    for running in locked.into_iter().filter(|row| row.is_running) {
        // The sums of the tenant outlive the conversation, and the provider bills the open call.
        budgets::free_at_end(connection, &running.into()).await?;
    }
    let events = delete(connection, RemoveEvents { conversation_ids }).await?;
    // Rows go before the rows that they refer to. The objects of the blobs are removed after the commit.
    delete(connection, RemoveGrants { conversation_ids }).await?;
    delete(connection, NoteObjects { conversation_ids }).await?;
    delete(connection, RemoveBlobs { conversation_ids }).await?;
    delete(connection, RemoveCheckpoints { conversation_ids }).await?;
    delete(connection, RemovePlans { conversation_ids }).await?;
    delete(connection, RemoveTraces { conversation_ids }).await?;
    delete(connection, RemoveContextCuts { conversation_ids }).await?;
    delete(connection, RemoveExecutions { conversation_ids }).await?;
    delete(connection, RemoveBudgets { conversation_ids }).await?;
    delete(connection, RemoveMessages { conversation_ids }).await?;
    let lists = list_changes::note_removed(connection, conversation_ids).await?;
    let conversations = delete(connection, RemoveConversations { conversation_ids }).await?;
    lists.forget_empty(connection).await?;
    Ok(Removed {
        conversations,
        events,
    })
}

/// Hides a conversation that the caller has locked. The work of the conversation ends at once, because running turns and
/// waiting messages count in the limits of the tenant. The number of changed rows does not depend on the ended turns.
pub(super) async fn hide(connection: &mut Connection, conversation_id: &str) -> Result<()> {
    for running in lock_running(connection, conversation_id).await? {
        // The sums belong to the tenant of the row, so the row must still have its tenant.
        budgets::free_at_end(connection, &running).await?;
    }
    let end = EndRunning {
        conversation_id,
        status: AgentExecutionStatus::Cancelled.as_str(),
        now: now(),
    };
    delete(connection, end).await?;
    delete(connection, RemoveQueued { conversation_id }).await?;
    let id = [conversation_id.to_owned()];
    let lists = list_changes::note_removed(connection, &id).await?;
    delete(connection, HideConversation { conversation_id }).await?;
    lists.forget_empty(connection).await
}

/// Removes at most `max_rows` rows of a hidden conversation. Returns false when there is no hidden conversation, or when
/// other processes remove the rows.
pub(super) async fn remove_rest(connection: &mut Connection, max_rows: u32) -> Result<bool> {
    let hidden: Option<String> = LockHidden
        .query_scalar()?
        .fetch_optional(&mut *connection)
        .await?;
    let Some(conversation_id) = hidden else {
        return Ok(false);
    };
    let mut pages = Pages {
        connection: &mut *connection,
        conversation_id: &conversation_id,
        rows_left: i64::from(max_rows.max(1)),
    };
    if pages.remove_all().await? {
        remove_last_rows(connection, conversation_id).await?;
    }
    Ok(true)
}

/// Removes the row of a hidden conversation, and the rows whose number does not grow with the turns. The answers to
/// approvals and the claims of client tools go with the conversation (`ON DELETE CASCADE`).
async fn remove_last_rows(connection: &mut Connection, conversation_id: String) -> Result<()> {
    let conversation_ids = &[conversation_id];
    delete(connection, RemoveGrants { conversation_ids }).await?;
    delete(connection, RemoveBudgets { conversation_ids }).await?;
    delete(connection, RemoveConversations { conversation_ids }).await?;
    Ok(())
}

/// The removal of pages in one transaction.
struct Pages<'a> {
    connection: &'a mut Connection,
    conversation_id: &'a str,
    /// The number of rows that the transaction may still remove.
    rows_left: i64,
}

impl Pages<'_> {
    /// Removes pages of every table. Rows go before the rows that they refer to. A worker that was thought dead may add a
    /// row behind the removal of its table. A foreign key then stops the transaction, and the next transaction finds
    /// the row. Returns true when no rows are left.
    async fn remove_all(&mut self) -> Result<bool> {
        self.remove(RemoveToolsPage {
            conversation_id: self.conversation_id,
            row_limit: self.rows_left,
        })
        .await?;
        self.remove(RemoveEventsPage {
            conversation_id: self.conversation_id,
            row_limit: self.rows_left,
        })
        .await?;
        self.remove_blobs().await?;
        self.remove(RemoveCheckpointsPage {
            conversation_id: self.conversation_id,
            row_limit: self.rows_left,
        })
        .await?;
        self.remove(RemovePlansPage {
            conversation_id: self.conversation_id,
            row_limit: self.rows_left,
        })
        .await?;
        self.remove(RemoveTracesPage {
            conversation_id: self.conversation_id,
            row_limit: self.rows_left,
        })
        .await?;
        self.remove(RemoveContextCutsPage {
            conversation_id: self.conversation_id,
            row_limit: self.rows_left,
        })
        .await?;
        self.remove_executions().await?;
        self.remove(RemoveMessagesPage {
            conversation_id: self.conversation_id,
            row_limit: self.rows_left,
        })
        .await?;
        Ok(self.rows_left > 0)
    }

    /// Removes a page of one table, unless the transaction has removed enough. Returns the number of removed rows.
    async fn remove(&mut self, page: impl Statement) -> Result<i64> {
        if self.rows_left <= 0 {
            return Ok(0);
        }
        let removed = delete(self.connection, page).await?;
        let removed = i64::try_from(removed).unwrap_or(i64::MAX);
        self.rows_left = self.rows_left.saturating_sub(removed);
        Ok(removed)
    }

    /// Removes pages of the agent executions: first those without sub-agents, then those whose sub-agents are gone.
    async fn remove_executions(&mut self) -> Result<()> {
        loop {
            let page = RemoveExecutionsPage {
                conversation_id: self.conversation_id,
                row_limit: self.rows_left,
            };
            let removed = self.remove(page).await?;
            if removed == 0 {
                return Ok(());
            }
        }
    }

    /// Removes a page of the blobs. After a full page, the transaction removes no more rows.
    async fn remove_blobs(&mut self) -> Result<()> {
        let row_limit = self.rows_left.min(MAX_BLOBS);
        if row_limit <= 0 {
            return Ok(());
        }
        let page = BlobsPage {
            conversation_id: self.conversation_id,
            row_limit,
        };
        let blob_ids: Vec<String> = page
            .query_scalar()?
            .fetch_all(&mut *self.connection)
            .await?;
        let count = i64::try_from(blob_ids.len()).unwrap_or(i64::MAX);
        if count == 0 {
            return Ok(());
        }
        let blob_ids = &blob_ids;
        delete(self.connection, NoteObjectsOf { blob_ids }).await?;
        delete(self.connection, RemoveBlobsOf { blob_ids }).await?;
        self.rows_left = if count == row_limit {
            0
        } else {
            self.rows_left - count
        };
        Ok(())
    }
}

async fn delete(connection: &mut Connection, statement: impl Statement) -> Result<u64> {
    let done = statement.query()?.execute(connection).await?;
    Ok(done.rows_affected())
}
