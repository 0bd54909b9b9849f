//! The lock of a conversation. A transaction that numbers events takes the lock first (invariant 2, one order).

use everturn_proto::LogId;
use sqlx::FromRow;

use super::{
    Connection,
    statement::Statement as _,
    statements::{
        agent_executions::LockRunning,
        conversations::{LockConversation, LockVisibleConversation},
    },
};
use crate::{
    api::{Access, Result, StepKey},
    error::{Missing, StoreError},
};

/// A conversation locked by the current transaction.
#[derive(FromRow)]
pub(super) struct LockedConversation {
    #[sqlx(try_from = "String")]
    pub(super) log_id: LogId,
    pub(super) tenant_id: String,
    /// The conversation's largest sequence number.
    #[sqlx(try_from = "i64")]
    pub(super) last_sequence: u32,
    /// The epoch of the run that last began or took over a turn.
    #[sqlx(try_from = "i64")]
    pub(super) run_epoch: u32,
    /// The largest epoch given to a run.
    #[sqlx(try_from = "i64")]
    pub(super) granted_epoch: u32,
}

/// Locks the conversation until the transaction ends. Returns `None` for an unknown conversation. In PostgreSQL a
/// statement sees only commits from before the statement's start. Therefore the statements after the lock must read the
/// previous transactions' rows. The locking statement itself must never read them.
pub(super) async fn lock_conversation(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<Option<LockedConversation>> {
    let lock = LockConversation { conversation_id };
    Ok(lock.query_as()?.fetch_optional(connection).await?)
}

/// Locks a conversation. An unknown conversation is an error.
pub(super) async fn lock_known(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<LockedConversation> {
    let locked = lock_conversation(connection, conversation_id).await?;
    locked.ok_or_else(|| StoreError::not_found(Missing::Conversation, conversation_id))
}

/// Locks the conversation for a caller. Returns false when no conversation is visible to the caller.
pub(super) async fn lock_visible_conversation(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
) -> Result<bool> {
    let last_sequence = lock_visible(connection, access, conversation_id).await?;
    Ok(last_sequence.is_some())
}

/// Like [`lock_visible_conversation`]. Returns the conversation's largest sequence number.
pub(super) async fn lock_visible(
    connection: &mut Connection,
    access: &Access,
    conversation_id: &str,
) -> Result<Option<i64>> {
    let lock = LockVisibleConversation {
        conversation_id,
        tenant_id: &access.tenant_id,
        owner_id: access.owner_id.as_deref(),
    };
    Ok(lock.query_scalar()?.fetch_optional(connection).await?)
}

/// Locks the running agent executions of a conversation, and returns their first steps. A transaction that ends several
/// agent executions calls the function first. An end takes the budget of the conversation, and the order of locks
/// demands every agent execution before the budget (rule 5 of "Locks" in `backend/mod.rs`).
pub(super) async fn lock_running(
    connection: &mut Connection,
    conversation_id: &str,
) -> Result<Vec<StepKey>> {
    let lock = LockRunning { conversation_id };
    let running: Vec<(String, String)> = lock.query_as()?.fetch_all(connection).await?;
    let step = |(agent_execution_id, message_id)| StepKey {
        conversation_id: conversation_id.to_owned(),
        message_id,
        agent_execution_id,
        step: 0,
        epoch: None,
    };
    Ok(running.into_iter().map(step).collect())
}
