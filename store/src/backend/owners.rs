//! Owners with refused credentials.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Database,
    statement::Statement as _,
    statements::owners::{
        AllowOwner, OwnerState as SelectOwnerState, Owners as SelectOwners, RefuseOwner,
        RemoveOverOwners,
    },
};
use crate::{
    api::{
        ChangedOwner, NewAuditEntry, OwnerChange, OwnerState, Owners, Reach, RefusedOwner, Result,
    },
    columns::now,
};

/// The most rows that a change removes, because rows that are over must not pile up.
const REMOVED_AT_ONCE: i64 = 100;

#[async_trait]
impl Owners for Database {
    async fn owner_state(&self, tenant_id: &str, owner_id: &str) -> Result<OwnerState> {
        let select = SelectOwnerState {
            tenant_id,
            owner: owner_id,
        };
        let query = select.query_as()?;
        let found: Option<OwnerState> = self.read(query.fetch_optional(self.reader())).await?;
        Ok(found.unwrap_or_default())
    }

    async fn refused_owners(&self, tenant_id: &str) -> Result<Vec<RefusedOwner>> {
        let select = SelectOwners {
            tenant_id,
            // Requests at the same moment may pass the limit.
            row_limit: 2 * i64::from(RefusedOwner::MAX_OF_TENANT),
        };
        let query = select.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn change_owner(
        &self,
        tenant_id: &str,
        owner_id: &str,
        change: OwnerChange,
        by: Reach,
        keep: TimeDelta,
        audit: &NewAuditEntry,
    ) -> Result<ChangedOwner> {
        let now = now();
        let keep_until = now
            .checked_add_signed(keep)
            .unwrap_or(DateTime::<Utc>::MAX_UTC);
        let of_all = by.covers(Reach::All);
        let remove = RemoveOverOwners {
            before: now,
            row_limit: REMOVED_AT_ONCE,
        };
        let refuse = |is_refused| RefuseOwner {
            tenant_id,
            owner: owner_id,
            is_refused,
            is_all_refused: is_refused && of_all,
            now,
            all_ended_at: of_all.then_some(now),
            keep_until,
            max_owners: i64::from(RefusedOwner::MAX_OF_TENANT),
        };
        let allow = AllowOwner {
            tenant_id,
            owner: owner_id,
            of_all,
            keep_until,
        };
        let select = SelectOwnerState {
            tenant_id,
            owner: owner_id,
        };
        let is_made = |changed: &ChangedOwner| *changed == ChangedOwner::Done;
        self.audited(Some(audit), is_made, async |connection| {
            remove.query()?.execute(&mut *connection).await?;
            let refuse = match change {
                OwnerChange::EndSessions => refuse(false),
                OwnerChange::Refuse => refuse(true),
                OwnerChange::Allow => {
                    allow.query()?.execute(&mut *connection).await?;
                    let query = select.query_as()?;
                    let left: Option<OwnerState> = query.fetch_optional(connection).await?;
                    return Ok(match left {
                        Some(left) if left.is_refused => ChangedOwner::RefusedByAll,
                        Some(_) | None => ChangedOwner::Done,
                    });
                }
            };
            let done = refuse.query()?.execute(&mut *connection).await?;
            Ok(match done.rows_affected() {
                0 => ChangedOwner::TooMany,
                _ => ChangedOwner::Done,
            })
        })
        .await
    }
}
