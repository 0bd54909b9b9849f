//! The audit trail.

use async_trait::async_trait;
use chrono::{DateTime, Days, Utc};

use super::{
    Connection, Database,
    statement::Statement as _,
    statements::audit::{Append, Entries, EntriesOfTenant, Prune},
};
use crate::{
    api::{AuditEntry, AuditQuery, AuditTrail, NewAuditEntry, Result},
    columns::{now, wide},
};

/// How far the times of entries may be out of order. Clocks differ, and a removal of conversations may take minutes
/// from its entry's time to its commit.
const DISORDER: chrono::TimeDelta = chrono::TimeDelta::hours(1);

/// A removal keeps the entries that are due in the last hour, because the database decides by its own clock.
const CLOCK_MARGIN: chrono::TimeDelta = chrono::TimeDelta::hours(1);

#[async_trait]
impl AuditTrail for Database {
    async fn append_audit(&self, new: &NewAuditEntry) -> Result<()> {
        self.transaction(async |connection| append(connection, new).await)
            .await
    }

    async fn audit_entries(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>> {
        let since = query.since.unwrap_or(DateTime::UNIX_EPOCH);
        let scan_from = since
            .checked_sub_signed(DISORDER)
            .unwrap_or(DateTime::UNIX_EPOCH);
        let (after_id, row_limit) = (wide(query.after), i64::from(query.limit));
        let until = query.until.unwrap_or_else(far_away);
        let action = query.action.as_ref().map(String::from);
        let (action, actor) = (action.as_deref(), query.actor.as_deref());
        let select = match query.tenant_id.as_deref() {
            None => Entries {
                after_id,
                scan_from,
                since,
                until,
                action,
                actor,
                row_limit,
            }
            .query_as()?,
            Some(tenant_id) => EntriesOfTenant {
                after_id,
                scan_from,
                since,
                until,
                action,
                actor,
                row_limit,
                tenant_id,
            }
            .query_as()?,
        };
        self.read(select.fetch_all(self.reader())).await
    }

    async fn prune_audit(&self, before: DateTime<Utc>, limit: u32) -> Result<u64> {
        self.in_time(async {
            let prune = Prune {
                before,
                now: now() - CLOCK_MARGIN,
                row_limit: i64::from(limit),
            };
            let done = prune.query()?.execute(&mut *self.single().await?).await?;
            Ok(done.rows_affected())
        })
        .await
    }
}

impl Database {
    /// Makes a change. If `is_made` confirms the change, appends its audit entry in the same transaction.
    pub(super) async fn audited<T>(
        &self,
        entry: Option<&NewAuditEntry>,
        is_made: fn(&T) -> bool,
        change: impl AsyncFnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let Some(entry) = entry else {
            return self
                .in_time(async { change(&mut *self.single().await?).await })
                .await;
        };
        self.transaction(async move |connection| {
            let done = change(&mut *connection).await?;
            if is_made(&done) {
                append(connection, entry).await?;
            }
            Ok(done)
        })
        .await
    }
}

/// Appends an entry in the caller's transaction. The append must be the transaction's last statement, because every
/// other appender waits from here to the commit.
pub(super) async fn append(connection: &mut Connection, new: &NewAuditEntry) -> Result<()> {
    let at = now();
    let keep_until = at
        .checked_add_days(Days::new(new.keep_days.into()))
        .unwrap_or_else(far_away);
    let tenant_id = new.tenant_id.as_deref().map(cut);
    let append = Append {
        at,
        keep_until,
        tenant_id: tenant_id.as_deref(),
        actor_kind: new.actor.kind.as_str(),
        actor_id: &cut(new.actor.id.as_deref().unwrap_or_default()),
        action: new.action.as_str(),
        target_kind: new.target.kind.as_str(),
        target_id: &cut(&new.target.id),
        outcome: new.outcome.as_str(),
        address: &cut(new.address.as_deref().unwrap_or_default()),
        request_id: &cut(new.request_id.as_deref().unwrap_or_default()),
        details: &details(new),
    };
    append.query()?.execute(connection).await?;
    Ok(())
}

/// Returns a time later than every entry.
fn far_away() -> DateTime<Utc> {
    DateTime::from_timestamp(253_402_300_799, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Cuts a text to the column's limit and replaces NUL, which PostgreSQL refuses.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(NewAuditEntry::MAX_TEXT_BYTES);
    text[..end].replace('\0', "\u{fffd}")
}

fn details(new: &NewAuditEntry) -> String {
    let text = serde_json::to_string(&new.details).unwrap_or_default();
    if (2..=NewAuditEntry::MAX_DETAIL_BYTES).contains(&text.len()) {
        text
    } else {
        r#"{"left_out":"too large"}"#.to_owned()
    }
}
