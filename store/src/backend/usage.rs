//! The sums of a tenant: LLM calls by day, model and agent, and tool calls by day, tool and agent. `budgets.rs` counts the
//! LLM calls.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Database,
    budgets::{day, slot},
    dialect::Parts,
    statement::Statement as _,
    statements::budgets::{
        AddToolCalls, ForgetToolUsage, ForgetUsage, ToolUsage, UsageDays, UsageDaysByAgent,
    },
};
use crate::api::{
    Result, StepKey, TenantUsage, ToolUsageDay, ToolUsageQuery, UsageBy, UsageDay, UsageQuery,
};

/// Adds the tool calls of an agent execution that ends to the tenant's sums.
pub(super) fn add_tool_calls(parts: &mut Parts, step: &StepKey, now: DateTime<Utc>) {
    let id = &step.agent_execution_id;
    parts.add(AddToolCalls {
        agent_execution_id: id,
        day: &day(now),
        slot: slot(id),
    });
}

#[async_trait]
impl TenantUsage for Database {
    async fn usage_days(&self, tenant_id: &str, query: &UsageQuery) -> Result<Vec<UsageDay>> {
        let after = query.after.clone().unwrap_or_default();
        let (agent, row_limit) = (query.agent.as_deref(), i64::from(query.limit));
        match query.by {
            UsageBy::Model => {
                let select = UsageDays {
                    tenant_id,
                    agent,
                    first_day: &query.from,
                    last_day: &query.to,
                    after_day: &after.day,
                    after_name: &after.name,
                    row_limit,
                };
                let select = select.query_as()?;
                self.read(select.fetch_all(self.reader())).await
            }
            UsageBy::Agent => {
                let select = UsageDaysByAgent {
                    tenant_id,
                    agent,
                    first_day: &query.from,
                    last_day: &query.to,
                    after_day: &after.day,
                    after_name: &after.name,
                    row_limit,
                };
                let select = select.query_as()?;
                self.read(select.fetch_all(self.reader())).await
            }
        }
    }

    async fn tool_usage(&self, query: &ToolUsageQuery) -> Result<Vec<ToolUsageDay>> {
        let after = query.after.clone().unwrap_or_default();
        let select = ToolUsage {
            tenant_id: query.tenant_id.as_deref(),
            agent: query.agent.as_deref(),
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

    async fn forget_usage(&self, before_day: &str) -> Result<u64> {
        self.in_time(async {
            let connection = &mut *self.single().await?;
            let forget = ForgetUsage { before_day };
            let calls = forget.query()?.execute(&mut *connection).await?;
            let forget = ForgetToolUsage { before_day };
            let tool_calls = forget.query()?.execute(connection).await?;
            Ok(calls.rows_affected() + tool_calls.rows_affected())
        })
        .await
    }
}
