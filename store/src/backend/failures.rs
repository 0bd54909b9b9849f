//! Reads failed agent executions across conversations. Every method is one statement.

use async_trait::async_trait;

use super::{
    Database,
    statement::Statement as _,
    statements::failures::{
        FailureCounts, FailureCountsOfTenant, Failures as SelectFailures, FailuresOfTenant,
    },
};
use crate::api::{AgentFailure, FailureCount, FailureCursor, FailureFilter, Failures, Result};

#[async_trait]
impl Failures for Database {
    async fn failures(
        &self,
        filter: &FailureFilter,
        after: Option<&FailureCursor>,
        limit: u32,
    ) -> Result<Vec<AgentFailure>> {
        let (agent, code) = (filter.agent.as_deref(), filter.code.as_deref());
        let since = filter.since;
        // Every id is behind the empty id, so the first page ends before `until`.
        let (before, before_id) = match after {
            Some(after) => (after.finished_at.min(filter.until), after.id.as_str()),
            None => (filter.until, ""),
        };
        let row_limit = i64::from(limit);
        let query = match filter.tenant_id.as_deref() {
            None => SelectFailures {
                since,
                before,
                before_id,
                agent,
                code,
                row_limit,
            }
            .query_as()?,
            Some(tenant_id) => FailuresOfTenant {
                since,
                before,
                before_id,
                agent,
                code,
                row_limit,
                tenant_id,
            }
            .query_as()?,
        };
        self.read(query.fetch_all(self.reader())).await
    }

    async fn failure_counts(
        &self,
        filter: &FailureFilter,
        limit: u32,
    ) -> Result<Vec<FailureCount>> {
        let (agent, code) = (filter.agent.as_deref(), filter.code.as_deref());
        let (since, until) = (filter.since, filter.until);
        let max_counted = i64::from(FailureCount::MAX_COUNTED);
        let row_limit = i64::from(limit);
        let query = match filter.tenant_id.as_deref() {
            None => FailureCounts {
                since,
                until,
                agent,
                code,
                max_counted,
                row_limit,
            }
            .query_as()?,
            Some(tenant_id) => FailureCountsOfTenant {
                since,
                until,
                agent,
                code,
                max_counted,
                row_limit,
                tenant_id,
            }
            .query_as()?,
        };
        self.read(query.fetch_all(self.reader())).await
    }
}
