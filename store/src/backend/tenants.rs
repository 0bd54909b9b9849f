//! The store's list and summaries of tenants.

use async_trait::async_trait;

use super::{
    Database,
    statement::Statement as _,
    statements::tenants::{
        Tenant, Tenants as SelectTenants, UsageOfTenants, UsageOfTenantsByAgent,
    },
};
use crate::{
    api::{Result, TenantSummary, TenantUsageDay, Tenants, TenantsUsageQuery, UsageBy},
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
        let (tenant_id, agent) = (query.tenant_id.as_deref(), query.agent.as_deref());
        match query.by {
            UsageBy::Model => {
                let select = UsageOfTenants {
                    tenant_id,
                    agent,
                    first_day: &query.from,
                    last_day: &query.to,
                    after_tenant_id: &after.tenant_id,
                    after_day: &after.of_tenant.day,
                    after_name: &after.of_tenant.name,
                    row_limit: i64::from(query.limit),
                };
                let select = select.query_as()?;
                self.read(select.fetch_all(self.reader())).await
            }
            UsageBy::Agent => {
                let select = UsageOfTenantsByAgent {
                    tenant_id,
                    agent,
                    first_day: &query.from,
                    last_day: &query.to,
                    after_tenant_id: &after.tenant_id,
                    after_day: &after.of_tenant.day,
                    after_name: &after.of_tenant.name,
                    row_limit: i64::from(query.limit),
                };
                let select = select.query_as()?;
                self.read(select.fetch_all(self.reader())).await
            }
        }
    }
}
