//! API keys and browser sessions. Every method is one statement.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Database, missing,
    sql::{Statement, keys},
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
        let insert = keys::insert(&new, now());
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
        let query = sqlx::query_as(keys::KEY).bind(id);
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn list_keys(
        &self,
        tenant_id: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ApiKey>> {
        let query = sqlx::query_as(keys::KEYS)
            .bind(KeyKind::Key.as_str())
            .bind(after.unwrap_or_default())
            .bind(tenant_id)
            .bind(i64::from(limit));
        self.read(query.fetch_all(self.reader())).await
    }

    async fn revoke_key(&self, id: &str, audit: Option<&NewAuditEntry>) -> Result<bool> {
        let query = sqlx::query(keys::REVOKE_KEY)
            .bind(id.to_owned())
            .bind(now());
        let is_made = |is_there: &bool| *is_there;
        self.audited(audit, is_made, async |connection| {
            Ok(query.execute(&mut *connection).await?.rows_affected() == 1)
        })
        .await
    }

    async fn touch_key(&self, id: &str, before: DateTime<Utc>) -> Result<()> {
        let query = sqlx::query(keys::TOUCH_KEY)
            .bind(id)
            .bind(now())
            .bind(before);
        self.change(query).await.map(drop)
    }

    async fn end_oldest_sessions(&self, of: SessionsOf<'_>, keep: u32, limit: u32) -> Result<u64> {
        let query = match of {
            SessionsOf::Key(id) => sqlx::query(keys::END_OLDEST_OF_KEY).bind(id),
            SessionsOf::Owner(access) => sqlx::query(keys::END_OLDEST_OF_OWNER)
                .bind(&access.tenant_id)
                .bind(&access.owner_id),
        };
        let query = query.bind(i64::from(keep)).bind(i64::from(limit));
        self.change(query).await
    }

    async fn remove_ended_sessions(&self, before: DateTime<Utc>, limit: u32) -> Result<u64> {
        let query = sqlx::query(keys::REMOVE_ENDED_SESSIONS)
            .bind(before)
            .bind(i64::from(limit));
        self.change(query).await
    }
}

impl Database {
    /// Runs a statement on its own, and returns the number of changed rows.
    async fn change(&self, statement: Statement) -> Result<u64> {
        self.in_time(async {
            let done = statement.execute(&mut *self.single().await?).await?;
            Ok(done.rows_affected())
        })
        .await
    }
}
