//! The lock of a conversation, which every transaction that numbers events takes first (invariant 2, one order).

use everturn_proto::LogId;
use sqlx::FromRow;

use super::{Connection, dialect::words, sql, sql::conversations};
use crate::{
    api::{Access, Result},
    error::{Missing, StoreError},
};

/// A conversation whose lock the transaction holds.
#[derive(FromRow)]
pub(super) struct LockedConversation {
    #[sqlx(try_from = "String")]
    pub(super) log_id: LogId,
    pub(super) tenant_id: String,
    /// Its largest sequence number.
    #[sqlx(try_from = "i64")]
    pub(super) last_sequence: u32,
    /// The epoch of the run that began or took over a turn last.
    #[sqlx(try_from = "i64")]
    pub(super) run_epoch: u32,
    /// The largest epoch that a run was given.
    #[sqlx(try_from = "i64")]
    pub(super) granted_epoch: u32,
}

/// Locks the conversation until the transaction ends; `None` when there is no such conversation. In PostgreSQL a
/// statement sees what was committed before the statement began. So what the transactions before this one wrote must be
/// read by the statements after this one, never by this one itself.
pub(super) async fn lock_conversation(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<Option<LockedConversation>> {
    let query = sqlx::query_as(words(conversations::LOCK_CONVERSATION)).bind(conversation_id);
    Ok(query.fetch_optional(connection).await?)
}

/// Locks a conversation; it is an error when there is no such conversation.
pub(super) async fn lock_known(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<LockedConversation> {
    let locked = lock_conversation(connection, conversation_id).await?;
    locked.ok_or_else(|| StoreError::not_found(Missing::Conversation, conversation_id))
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
