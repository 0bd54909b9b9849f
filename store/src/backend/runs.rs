//! Decides which run of a conversation's workflow owns the conversation (invariant 11, one run).
//!
//! Of two runs the engine stops the older run, but not its activities that are still running on a worker. Therefore the
//! store counts runs in epochs. A run sends its epoch with every request, and the store refuses the request after a
//! newer run has taken over.
//!
//! A new run has no epoch. A turn without a running owner needs no new epoch: the turn begins under the conversation's
//! epoch. If a turn is running already, the store only grants a new epoch, and the run asks again with the new epoch in
//! an activity scheduled by the engine. The engine schedules the activity only for the newest run. An older run with a
//! late first request therefore never uses its granted epoch.

use super::{
    Connection,
    lock::LockedConversation,
    statement::Statement as _,
    statements::conversations::{HasConversation, SetEpochs},
};
use crate::{api::Result, error::StoreError};

/// Epoch in the first request of a run without a granted epoch. The store grants epochs from 1 on.
pub(crate) const NONE_YET: u32 = 0;

/// How a run gets its epoch.
pub(super) enum Entry {
    /// The run begins the turn under this epoch.
    Goes(u32),
    /// The run asks again with this epoch.
    AsksAgain(u32),
}

/// Decides the epoch under which a run begins a turn. `takes_over` means: a turn is running, perhaps under another run.
pub(super) async fn enter(
    connection: &mut Connection,
    conversation_id: &str,
    conversation: &LockedConversation,
    epoch: Option<u32>,
    takes_over: bool,
) -> Result<Entry> {
    let LockedConversation {
        run_epoch,
        granted_epoch,
        ..
    } = *conversation;
    let Some(epoch) = epoch else {
        return Ok(Entry::Goes(run_epoch));
    };
    let next = granted_epoch + 1;
    let is_given = epoch != NONE_YET && epoch >= run_epoch;
    let (entry, run_epoch_then, granted_then) = if is_given {
        (Entry::Goes(epoch), epoch, granted_epoch)
    } else if takes_over {
        (Entry::AsksAgain(next), run_epoch, next)
    } else if granted_epoch == run_epoch {
        (Entry::Goes(run_epoch), run_epoch, granted_epoch)
    } else {
        // An older run may hold the last granted epoch, so the current run takes a newer epoch.
        (Entry::Goes(next), next, next)
    };
    if (run_epoch_then, granted_then) != (run_epoch, granted_epoch) {
        let set = SetEpochs {
            conversation_id,
            run_epoch: i64::from(run_epoch_then),
            granted_epoch: i64::from(granted_then),
        };
        set.query()?.execute(connection).await?;
    }
    Ok(entry)
}

/// Refuses a replaced run, under the conversation's lock.
pub(super) fn check(
    conversation: &LockedConversation,
    conversation_id: &str,
    epoch: Option<u32>,
) -> Result<()> {
    if epoch.is_some_and(|epoch| epoch < conversation.run_epoch) {
        return Err(replaced(conversation_id));
    }
    Ok(())
}

/// Refuses a replaced run without the lock. The caller's claim has changed no row, for this reason or another.
pub(super) async fn check_unlocked(
    connection: &mut Connection,
    conversation_id: &str,
    epoch: Option<u32>,
) -> Result<()> {
    let has = HasConversation {
        conversation_id,
        run_epoch: newest(epoch),
    };
    let has_conversation: bool = has.query_scalar()?.fetch_one(connection).await?;
    if has_conversation {
        Ok(())
    } else {
        Err(replaced(conversation_id))
    }
}

/// Returns a statement's parameter: the statement changes no row when the conversation's run has a larger epoch. The
/// epoch of a hidden conversation, `i64::MAX`, is larger than every parameter (`removal/hide_conversation.sql`).
pub(crate) fn newest(epoch: Option<u32>) -> i64 {
    epoch.map_or(i64::MAX - 1, i64::from)
}

fn replaced(conversation_id: &str) -> StoreError {
    StoreError::RunReplaced {
        conversation_id: conversation_id.to_owned(),
    }
}
