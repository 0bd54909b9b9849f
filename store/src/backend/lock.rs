//! The lock of a conversation, which every transaction that numbers events takes first (invariant 2, one order).

use super::{Connection, dialect::words, sql, sql::conversations};
use crate::{
    api::{Access, Result},
    columns::narrow,
    error::{Missing, StoreError},
};

/// Locks the conversation until the transaction ends, and returns its largest sequence number; `None` when there is no
/// such conversation. In PostgreSQL a statement sees what was committed before the statement began. So what the
/// transactions before this one wrote must be read by the statements after this one, never by this one itself.
pub(super) async fn lock_conversation(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<Option<u32>> {
    let last_sequence: Option<i64> = sqlx::query_scalar(words(conversations::LOCK_CONVERSATION))
        .bind(conversation_id)
        .fetch_optional(connection)
        .await?;
    last_sequence.map(narrow).transpose()
}

/// Locks a conversation; it is an error when there is no such conversation.
pub(super) async fn lock_known(connection: &mut Connection, conversation_id: &str) -> Result<u32> {
    let last_sequence = lock_conversation(connection, conversation_id).await?;
    last_sequence.ok_or_else(|| StoreError::not_found(Missing::Conversation, conversation_id))
}

/// Locks the conversation for a caller; false when there is none that they may see.
pub(super) async fn lock_visible_conversation(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
) -> Result<bool> {
    let text = words(conversations::LOCK_VISIBLE_CONVERSATION);
    let locked: Option<(i64,)> = sql::for_caller(text, access, conversation_id)
        .fetch_optional(connection)
        .await?;
    Ok(locked.is_some())
}
