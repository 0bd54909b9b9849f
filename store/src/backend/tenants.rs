//! The store's list and summaries of tenants.

use async_trait::async_trait;

use super::{
    Database,
    statement::Statement as _,
    statements::tenants::{Tenant, Tenants as SelectTenants, UsageOfTenants},
};
use crate::{
    api::{Result, TenantSummary, TenantUsageDay, Tenants, TenantsUsageQuery},
    columns::now,
    error::StoreError,
};

#[async_trait]
impl Tenants for Database {
    async fn tenants(&self, after: Option<&str>, limit: u32) -> Result<Vec<TenantSummary>> {
        let select = SelectTenants {
            now: now(),
            max_counted: i64::from(TenantSummary::MAX_COUNTED),
            after_id: after.unwrap_or_default(),
            row_limit: i64::from(limit),
        };
        let query = select.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }

    async fn tenant(&self, tenant_id: &str) -> Result<TenantSummary> {
        let select = Tenant {
            now: now(),
            max_counted: i64::from(TenantSummary::MAX_COUNTED),
            tenant_id,
        };
        let query = select.query_as()?;
        let found = self.read(query.fetch_optional(self.reader())).await?;
        found.ok_or_else(|| StoreError::Corrupt("the answer lacks a row of the query".into()))
    }

    async fn usage_of_tenants(&self, query: &TenantsUsageQuery) -> Result<Vec<TenantUsageDay>> {
        let after = query.after.clone().unwrap_or_default();
        let select = UsageOfTenants {
            tenant_id: query.tenant_id.as_deref(),
            first_day: &query.from,
            last_day: &query.to,
            after_tenant_id: &after.tenant_id,
            after_day: &after.of_tenant.day,
            after_model: &after.of_tenant.model,
            row_limit: i64::from(query.limit),
        };
        let query = select.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }
}
