//! The store's list and summaries of tenants.

use async_trait::async_trait;

use super::{
    Database,
    sql::{Select, tenants as sql},
};
use crate::{
    api::{Result, TenantSummary, TenantUsageDay, Tenants, TenantsUsageQuery},
    columns::now,
    error::StoreError,
};

#[async_trait]
impl Tenants for Database {
    async fn tenants(&self, after: Option<&str>, limit: u32) -> Result<Vec<TenantSummary>> {
        let query = summaries(sql::TENANTS)
            .bind(after.unwrap_or_default())
            .bind(i64::from(limit));
        self.read(query.fetch_all(self.reader())).await
    }

    async fn tenant(&self, tenant_id: &str) -> Result<TenantSummary> {
        let query = summaries(sql::TENANT).bind(tenant_id);
        let found = self.read(query.fetch_optional(self.reader())).await?;
        found.ok_or_else(|| StoreError::Corrupt("a row that was asked for is missing".into()))
    }

    async fn usage_of_tenants(&self, query: &TenantsUsageQuery) -> Result<Vec<TenantUsageDay>> {
        let after = query.after.clone().unwrap_or_default();
        let query = sqlx::query_as(sql::USAGE_OF_TENANTS)
            .bind(&query.tenant_id)
            .bind(&query.from)
            .bind(&query.to)
            .bind(after.tenant_id)
            .bind(after.of_tenant.day)
            .bind(after.of_tenant.model)
            .bind(i64::from(query.limit));
        self.read(query.fetch_all(self.reader())).await
    }
}

/// Binds the first parameters of the two summary texts.
fn summaries<'q>(text: &'static str) -> Select<'q, TenantSummary> {
    sqlx::query_as(text)
        .bind(now())
        .bind(i64::from(TenantSummary::MAX_COUNTED))
}
