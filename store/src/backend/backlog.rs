//! Reads the work that waits across conversations.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Database,
    statement::Statement as _,
    statements::{outside::WaitingApprovals, reconciliation::CountDue},
};
use crate::api::{Backlog, Backlogs, Result};

#[async_trait]
impl Backlogs for Database {
    async fn backlog(&self, now: DateTime<Utc>) -> Result<Backlog> {
        let max_counted = i64::from(Backlog::MAX_COUNTED);
        let approvals = WaitingApprovals { now, max_counted }.query_as()?;
        let checks = CountDue { now, max_counted }.query_as()?;
        Ok(Backlog {
            approvals: self.read(approvals.fetch_all(self.reader())).await?,
            checks: self.read(checks.fetch_one(self.reader())).await?,
        })
    }
}
