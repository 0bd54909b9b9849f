//! API keys and browser sessions. Each method is one statement.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Store, dialect::sql_error, missing};
use crate::{
    api::{ApiKey, KeyKind, Keys, NewKey, Result},
    error::StoreError,
    rows::{KeyRow, now},
    sql,
};

#[async_trait]
impl Keys for Store {
    async fn create_key(&self, new: NewKey) -> Result<()> {
        let inserted = self
            .in_time(async {
                sqlx::query(sql::INSERT_KEY)
                    .bind(&new.id)
                    .bind(new.kind.as_str())
                    .bind(&new.parent_id)
                    .bind(&new.secret_hash)
                    .bind(&new.access.tenant_id)
                    .bind(&new.access.owner_id)
                    .bind(&new.scopes)
                    .bind(&new.name)
                    .bind(now())
                    .bind(new.expires_at)
                    .execute(&mut *self.single().await?)
                    .await
                    .map_err(missing("key", new.parent_id.as_deref().unwrap_or_default()))
            })
            .await?;
        if inserted.rows_affected() == 1 {
            Ok(())
        } else {
            Err(StoreError::Conflict("the key's id is taken".into()))
        }
    }

    async fn find_key(&self, id: &str) -> Result<Option<ApiKey>> {
        let query = sqlx::query_as(sql::KEY).bind(id);
        let row: Option<KeyRow> = self
            .in_time(async { query.fetch_optional(self.reader()).await.map_err(sql_error) })
            .await?;
        row.map(KeyRow::key).transpose()
    }

    async fn list_keys(
        &self,
        tenant_id: Option<&str>,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ApiKey>> {
        let query = sqlx::query_as(sql::KEYS)
            .bind(KeyKind::Key.as_str())
            .bind(after)
            .bind(tenant_id);
        let query = query.bind(i64::from(limit));
        let rows: Vec<KeyRow> = self
            .in_time(async { query.fetch_all(self.reader()).await.map_err(sql_error) })
            .await?;
        rows.into_iter().map(KeyRow::key).collect()
    }

    async fn revoke_key(&self, id: &str) -> Result<bool> {
        let query = sqlx::query(sql::REVOKE_KEY).bind(id).bind(now());
        let done = self
            .in_time(async {
                query
                    .execute(&mut *self.single().await?)
                    .await
                    .map_err(sql_error)
            })
            .await?;
        Ok(done.rows_affected() == 1)
    }

    async fn touch_key(&self, id: &str, before: DateTime<Utc>) -> Result<()> {
        let query = sqlx::query(sql::TOUCH_KEY)
            .bind(id)
            .bind(now())
            .bind(before);
        self.in_time(async {
            query
                .execute(&mut *self.single().await?)
                .await
                .map_err(sql_error)
        })
        .await
        .map(drop)
    }

    async fn remove_ended_sessions(&self, before: DateTime<Utc>, limit: u32) -> Result<u64> {
        let query = sqlx::query(sql::REMOVE_ENDED_SESSIONS)
            .bind(before)
            .bind(i64::from(limit));
        let done = self
            .in_time(async {
                query
                    .execute(&mut *self.single().await?)
                    .await
                    .map_err(sql_error)
            })
            .await?;
        Ok(done.rows_affected())
    }
}
