//! The removal of whole conversations with their rows, for expired and for deleted conversations.

use super::{
    Connection,
    statement::Statement,
    statements::removal::{
        LockExecutions, NoteObjects, RemoveBlobs, RemoveBudgets, RemoveCheckpoints,
        RemoveContextCuts, RemoveConversations, RemoveEvents, RemoveExecutions, RemoveGrants,
        RemoveMessages, RemovePlans, RemoveTools, RemoveTraces,
    },
};
use crate::api::{Removed, Result};

/// Removes conversations. The caller has locked them.
pub(super) async fn remove(
    connection: &mut Connection,
    conversation_ids: &[String],
) -> Result<Removed> {
    // A worker that was thought dead may still write. With this order of locks, the worker's transaction and the
    // removal never wait for each other ("Locks" in `backend/mod.rs`).
    delete(connection, RemoveTools { conversation_ids }).await?;
    let lock = LockExecutions { conversation_ids };
    lock.query()?.fetch_all(&mut *connection).await?;
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
