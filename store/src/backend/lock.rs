//! The lock of a conversation, which every transaction that numbers events takes first (invariant 2).

use super::{
    Connection,
    dialect::{sql_error, words},
};
use crate::{
    api::{Access, Result},
    rows::narrow,
    sql,
};

/// Locks the conversation until the transaction ends and gives its largest sequence number; `None` when there is
/// none. In PostgreSQL each later statement sees what was committed before it began, so whatever the transactions
/// before this one wrote is read by statements after this one, never by this one.
pub(super) async fn lock_conversation(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<Option<u32>> {
    let last_sequence: Option<i64> = sqlx::query_scalar(words(sql::LOCK_CONVERSATION))
        .bind(conversation_id)
        .fetch_optional(connection)
        .await
        .map_err(sql_error)?;
    last_sequence.map(narrow).transpose()
}

/// The same for a caller; `None` also when they may not see it.
pub(super) async fn lock_visible_conversation(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
) -> Result<Option<u32>> {
    let last_sequence: Option<i64> = sqlx::query_scalar(words(sql::LOCK_VISIBLE_CONVERSATION))
        .bind(conversation_id)
        .bind(&access.tenant_id)
        .bind(&access.owner_id)
        .fetch_optional(connection)
        .await
        .map_err(sql_error)?;
    last_sequence.map(narrow).transpose()
}
