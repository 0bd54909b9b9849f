//! The removal of whole conversations with all their rows, for those that are too old and those that are deleted.

use super::{
    Connection,
    dialect::{list, sql_error, words},
};
use crate::{
    api::{Removed, Result},
    sql,
};

/// Removes conversations that the caller has locked.
pub(super) async fn remove(
    connection: &mut Connection,
    conversation_ids: &[String],
) -> Result<Removed> {
    // The order keeps workers thought dead from being in the way: see "Locks" in `backend/mod.rs`.
    delete(connection, sql::REMOVE_TOOLS, conversation_ids).await?;
    sqlx::query(words(sql::LOCK_EXECUTIONS))
        .bind(list(conversation_ids))
        .fetch_all(&mut *connection)
        .await
        .map_err(sql_error)?;
    let events = delete(connection, sql::REMOVE_EVENTS, conversation_ids).await?;
    for text in sql::REMOVE_ROWS {
        delete(connection, text, conversation_ids).await?;
    }
    let conversations = delete(connection, sql::REMOVE_CONVERSATIONS, conversation_ids).await?;
    Ok(Removed {
        conversations,
        events,
    })
}

async fn delete(
    connection: &mut Connection,
    text: sql::Text,
    conversation_ids: &[String],
) -> Result<u64> {
    let done = sqlx::query(words(text))
        .bind(list(conversation_ids))
        .execute(connection)
        .await
        .map_err(sql_error)?;
    Ok(done.rows_affected())
}
