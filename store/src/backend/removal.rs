//! The removal of whole conversations with their rows, for expired and for deleted conversations.

use sqlx::FromRow;

use super::{
    Connection, budgets,
    statement::Statement,
    statements::removal::{
        LockExecutions, NoteObjects, RemoveBlobs, RemoveBudgets, RemoveCheckpoints,
        RemoveContextCuts, RemoveConversations, RemoveEvents, RemoveExecutions, RemoveGrants,
        RemoveMessages, RemovePlans, RemoveTools, RemoveTraces,
    },
};
use crate::api::{Removed, Result, StepKey};

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
    let conversations = delete(connection, RemoveConversations { conversation_ids }).await?;
    Ok(Removed {
        conversations,
        events,
    })
}

async fn delete(connection: &mut Connection, statement: impl Statement) -> Result<u64> {
    let done = statement.query()?.execute(connection).await?;
    Ok(done.rows_affected())
}
