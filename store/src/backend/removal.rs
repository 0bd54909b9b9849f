//! The removal of whole conversations with their rows, for expired and for deleted conversations.

use super::{
    Connection,
    dialect::{list, words},
    sql::removal::{
        LOCK_EXECUTIONS, REMOVE_CONVERSATIONS, REMOVE_EVENTS, REMOVE_ROWS, REMOVE_TOOLS,
    },
};
use crate::{
    api::{Removed, Result},
    sql_text::SqlText,
};

/// Removes conversations. The caller has locked them.
pub(super) async fn remove(
    connection: &mut Connection,
    conversation_ids: &[String],
) -> Result<Removed> {
    // A worker that was thought dead may still write. With this order of locks, the worker's transaction and the
    // removal never wait for each other ("Locks" in `backend/mod.rs`).
    delete(connection, REMOVE_TOOLS, conversation_ids).await?;
    sqlx::query(words(LOCK_EXECUTIONS))
        .bind(list(conversation_ids))
        .fetch_all(&mut *connection)
        .await?;
    let events = delete(connection, REMOVE_EVENTS, conversation_ids).await?;
    for text in REMOVE_ROWS {
        delete(connection, text, conversation_ids).await?;
    }
    let conversations = delete(connection, REMOVE_CONVERSATIONS, conversation_ids).await?;
    Ok(Removed {
        conversations,
        events,
    })
}

async fn delete(
    connection: &mut Connection,
    text: SqlText,
    conversation_ids: &[String],
) -> Result<u64> {
    let done = sqlx::query(words(text))
        .bind(list(conversation_ids))
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}
