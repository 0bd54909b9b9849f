//! Which run of a conversation's workflow has the conversation (invariant 11, one run).
//!
//! Of two runs the engine stops the older one, but not the activities that a worker of it still runs. So the store
//! counts the runs in epochs. All that a run asks names its epoch, and is refused when a newer run has taken over.
//!
//! A run has no epoch when it begins, and a turn that nobody runs needs none: it begins under the epoch of the
//! conversation. Where a turn runs already, the store only gives the run a new epoch, and the run asks again with it,
//! in an activity that the engine schedules. The engine does so for the newest run alone. An older run, whose first
//! request came late, therefore never uses the epoch that it is given.

use super::{
    Connection,
    lock::LockedConversation,
    sql::conversations::{HAS_CONVERSATION, SET_EPOCHS},
};
use crate::{api::Result, error::StoreError};

/// The epoch in the first request of a run, which has none yet. The store gives those from 1 on.
pub(crate) const NONE_YET: u32 = 0;

/// How a run comes to its epoch.
pub(super) enum Entry {
    /// It goes on with this one; `None`: a run of an earlier release, which is never refused.
    Goes(Option<u32>),
    /// It asks again with this one.
    AsksAgain(u32),
}

/// Decides under which epoch a run begins a turn. `takes_over` says that a turn runs, which may be another run's.
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
        return Ok(Entry::Goes(None));
    };
    let next = granted_epoch + 1;
    let is_given = epoch != NONE_YET && epoch >= run_epoch;
    let (entry, run_epoch_then, granted_then) = if is_given {
        (Entry::Goes(Some(epoch)), epoch, granted_epoch)
    } else if takes_over {
        (Entry::AsksAgain(next), run_epoch, next)
    } else if granted_epoch == run_epoch {
        (Entry::Goes(Some(run_epoch)), run_epoch, granted_epoch)
    } else {
        // An older run may hold the epoch that was given last, so this one takes a newer one.
        (Entry::Goes(Some(next)), next, next)
    };
    if (run_epoch_then, granted_then) != (run_epoch, granted_epoch) {
        sqlx::query(SET_EPOCHS)
            .bind(conversation_id)
            .bind(i64::from(run_epoch_then))
            .bind(i64::from(granted_then))
            .execute(connection)
            .await?;
    }
    Ok(entry)
}

/// Refuses a run that was replaced, under the lock of the conversation.
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

/// Refuses a run that was replaced, and that has claimed nothing for this reason or another one.
pub(super) async fn check_unlocked(
    connection: &mut Connection,
    conversation_id: &str,
    epoch: Option<u32>,
) -> Result<()> {
    let has_conversation: bool = sqlx::query_scalar(HAS_CONVERSATION)
        .bind(conversation_id)
        .bind(newest(epoch))
        .fetch_one(connection)
        .await?;
    if has_conversation {
        Ok(())
    } else {
        Err(replaced(conversation_id))
    }
}

/// Returns the parameter of a statement that changes nothing when the conversation's run has a larger epoch.
pub(crate) fn newest(epoch: Option<u32>) -> i64 {
    epoch.map_or(i64::MAX, i64::from)
}

fn replaced(conversation_id: &str) -> StoreError {
    StoreError::RunReplaced {
        conversation_id: conversation_id.to_owned(),
    }
}
