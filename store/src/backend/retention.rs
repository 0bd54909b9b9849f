//! Removes old conversations, the rows of hidden conversations, and definitions of agents without a turn, with a bounded
//! number of rows per transaction.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Connection, Database,
    removal::{MAX_EVENTS, hide, remove, remove_rest},
    statement::Statement as _,
    statements::removal::{
        CountExpired, Expired, LockExpired, LockUnusedDefinitions, RemoveDefinitions, StillExpired,
    },
};
use crate::api::{Removed, RemovedBatch, Result, Retention};

#[async_trait]
impl Retention for Database {
    async fn count_expired(&self, before: DateTime<Utc>) -> Result<Removed> {
        let query = CountExpired { before }.query_as()?;
        self.read(query.fetch_one(self.reader())).await
    }

    async fn remove_expired(
        &self,
        before: DateTime<Utc>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RemovedBatch> {
        let (after, limit) = (after.unwrap_or_default(), limit.max(1));
        self.removing(async |connection| remove_expired(connection, before, after, limit).await)
            .await
    }

    async fn next_expired(
        &self,
        before: DateTime<Utc>,
        after: Option<&str>,
    ) -> Result<Option<String>> {
        let next = Expired {
            before,
            after_id: after.unwrap_or_default(),
            row_limit: 1,
        };
        let query = next.query_scalar()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn remove_rest(&self, max_rows: u32) -> Result<bool> {
        self.removing(async |connection| remove_rest(connection, max_rows).await)
            .await
    }

    async fn remove_definitions(&self, limit: u32) -> Result<u64> {
        self.transaction(async |connection| remove_definitions(connection, limit).await)
            .await
    }
}

async fn remove_definitions(connection: &mut Connection, limit: u32) -> Result<u64> {
    let lock = LockUnusedDefinitions {
        row_limit: i64::from(limit.max(1)),
    };
    let hashes: Vec<String> = lock.query_scalar()?.fetch_all(&mut *connection).await?;
    if hashes.is_empty() {
        return Ok(0);
    }
    let remove = RemoveDefinitions { hashes: &hashes };
    let removed = remove.query()?.execute(connection).await?;
    Ok(removed.rows_affected())
}

async fn remove_expired(
    connection: &mut Connection,
    before: DateTime<Utc>,
    after: &str,
    limit: u32,
) -> Result<RemovedBatch> {
    let lock = LockExpired {
        before,
        after_id: after,
        row_limit: i64::from(limit),
    };
    let locked: Vec<String> = lock.query_scalar()?.fetch_all(&mut *connection).await?;
    let is_full = locked.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let mut next = if is_full {
        locked.last().cloned()
    } else {
        None
    };
    let still = StillExpired {
        before,
        conversation_ids: &locked,
    };
    let expired: Vec<(String, i64)> = still.query_as()?.fetch_all(&mut *connection).await?;

    let count = expired.len();
    let large = expired.first().filter(|(_, events)| *events > MAX_EVENTS);
    if let Some((id, events)) = large {
        hide(connection, id).await?;
        let removed = Removed {
            conversations: 1,
            events: u64::try_from(*events).unwrap_or_default(),
        };
        let next = (count > 1).then(|| id.clone()).or(next);
        return Ok(RemovedBatch { removed, next });
    }
    let taken = within(expired, MAX_EVENTS);
    if taken.len() < count {
        next = taken.last().cloned();
    }
    let removed = if taken.is_empty() {
        Removed::default()
    } else {
        remove(connection, &taken).await?
    };
    Ok(RemovedBatch { removed, next })
}

/// Returns the first conversations with at most `max_events` events together, and at least one conversation.
fn within(conversations: Vec<(String, i64)>, max_events: i64) -> Vec<String> {
    let mut events: i64 = 0;
    let fits = |(index, (_, count)): &(usize, (String, i64))| {
        events = events.saturating_add(*count);
        *index == 0 || events <= max_events
    };
    conversations
        .into_iter()
        .enumerate()
        .take_while(fits)
        .map(|(_, (id, _))| id)
        .collect()
}
