//! API keys and browser sessions. Every method is one statement, but the revocation of a key with the keys that the key
//! made.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Database,
    audit::append,
    missing,
    statement::Statement,
    statements::keys::{
        EndOldestOfKey, EndOldestOfOwner, InsertKey, Key, Keys as SelectKeys, LockMadeKeys,
        RemoveEndedSessions, RevokeKey, TouchKey,
    },
};
use crate::{
    api::{ApiKey, KeyKind, Keys, NewAuditEntry, NewKey, Result, SessionsOf},
    columns::now,
    error::{Missing, StoreError},
};

#[async_trait]
impl Keys for Database {
    async fn create_key(&self, new: NewKey, audit: Option<&NewAuditEntry>) -> Result<()> {
        let parent_id = new.parent_id.as_deref().unwrap_or_default();
        let now = now();
        let insert = InsertKey {
            key_id: &new.id,
            kind: new.kind.as_str(),
            parent_id: new.parent_id.as_deref(),
            secret_hash: &new.secret_hash,
            tenant_id: &new.access.tenant_id,
            owner_id: new.access.owner_id.as_deref(),
            scopes: &new.scopes,
            name: &new.name,
            made_by_key: new.made_by.key.as_deref(),
            made_by_subject: new.made_by.subject.as_deref(),
            now,
            expires_at: new.expires_at,
            signed_in_at: new.signed_in_at.unwrap_or(now),
        };
        let insert = insert.query()?;
        let is_made = |rows: &u64| *rows == 1;
        let inserted = self.audited(audit, is_made, async |connection| {
            let inserted = insert.execute(&mut *connection).await;
            let inserted = inserted.map_err(missing(Missing::Key, parent_id))?;
            Ok(inserted.rows_affected())
        });
        if inserted.await? == 1 {
            Ok(())
        } else {
            Err(StoreError::Conflict("the key's id is taken".into()))
        }
    }

    async fn find_key(&self, id: &str) -> Result<Option<ApiKey>> {
        let query = Key { key_id: id }.query_as()?;
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn list_keys(
        &self,
        tenant_id: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ApiKey>> {
        let select = SelectKeys {
            kind: KeyKind::Key.as_str(),
            after_id: after.unwrap_or_default(),
            tenant_id,
            row_limit: i64::from(limit),
        };
        let query = select.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn revoke_key(&self, id: &str, audit: Option<&NewAuditEntry>) -> Result<bool> {
        let revoke = RevokeKey {
            key_id: id,
            now: now(),
        };
        let query = revoke.query()?;
        let is_made = |is_there: &bool| *is_there;
        self.audited(audit, is_made, async |connection| {
            Ok(query.execute(&mut *connection).await?.rows_affected() == 1)
        })
        .await
    }

    async fn revoke_made_keys(
        &self,
        id: &str,
        limit: u32,
        audit: &NewAuditEntry,
    ) -> Result<Vec<String>> {
        let lock = LockMadeKeys {
            key_id: id,
            row_limit: i64::from(limit),
        };
        self.transaction(async |connection| {
            let keys: Vec<(String, String)> = lock.query_as()?.fetch_all(&mut *connection).await?;
            let now = now();
            for (key_id, _) in &keys {
                let revoke = RevokeKey { key_id, now };
                revoke.query()?.execute(&mut *connection).await?;
            }
            // Appends come last, because other appenders wait for them.
            for (key_id, tenant_id) in &keys {
                let mut entry = audit.clone();
                entry.target.id.clone_from(key_id);
                entry.tenant_id = Some(tenant_id.clone());
                append(&mut *connection, &entry).await?;
            }
            Ok(keys.into_iter().map(|(id, _)| id).collect())
        })
        .await
    }

    async fn touch_key(&self, id: &str, before: DateTime<Utc>) -> Result<()> {
        let touch = TouchKey {
            key_id: id,
            now: now(),
            noted_before: before,
        };
        self.change(touch).await.map(drop)
    }

    async fn end_oldest_sessions(&self, of: SessionsOf<'_>, keep: u32, limit: u32) -> Result<u64> {
        let (keep, row_limit) = (i64::from(keep), i64::from(limit));
        match of {
            SessionsOf::Key(parent_id) => {
                self.change(EndOldestOfKey {
                    parent_id,
                    keep,
                    row_limit,
                })
                .await
            }
            SessionsOf::Owner(access) => {
                let end = EndOldestOfOwner {
                    tenant_id: &access.tenant_id,
                    owner: access.owner_id.as_deref(),
                    keep,
                    row_limit,
                };
                self.change(end).await
            }
        }
    }

    async fn remove_ended_sessions(&self, before: DateTime<Utc>, limit: u32) -> Result<u64> {
        let remove = RemoveEndedSessions {
            before,
            row_limit: i64::from(limit),
        };
        self.change(remove).await
    }
}

impl Database {
    /// Runs a statement on its own, and returns the number of changed rows.
    pub(super) async fn change(&self, statement: impl Statement) -> Result<u64> {
        let query = statement.query()?;
        self.in_time(async {
            let done = query.execute(&mut *self.single().await?).await?;
            Ok(done.rows_affected())
        })
        .await
    }
}
