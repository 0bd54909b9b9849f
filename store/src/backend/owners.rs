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
    api::{NewAuditEntry, OwnerChange, OwnerState, Owners, RefusedOwner, Result},
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
        keep: TimeDelta,
        audit: &NewAuditEntry,
    ) -> Result<bool> {
        let now = now();
        let keep_until = now
            .checked_add_signed(keep)
            .unwrap_or(DateTime::<Utc>::MAX_UTC);
        let remove = RemoveOverOwners {
            before: now,
            row_limit: REMOVED_AT_ONCE,
        };
        let refuse = |is_refused| RefuseOwner {
            tenant_id,
            owner: owner_id,
            is_refused,
            now,
            keep_until,
            max_owners: i64::from(RefusedOwner::MAX_OF_TENANT),
        };
        let is_made = |is_made: &bool| *is_made;
        self.audited(Some(audit), is_made, async |connection| {
            remove.query()?.execute(&mut *connection).await?;
            let refuse = match change {
                OwnerChange::EndSessions => refuse(false),
                OwnerChange::Refuse => refuse(true),
                OwnerChange::Allow => {
                    let allow = AllowOwner {
                        tenant_id,
                        owner: owner_id,
                        keep_until,
                    };
                    allow.query()?.execute(&mut *connection).await?;
                    return Ok(true);
                }
            };
            let done = refuse.query()?.execute(&mut *connection).await?;
            Ok(done.rows_affected() == 1)
        })
        .await
    }
}
