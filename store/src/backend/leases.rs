//! The leases of workers, and the agent executions of lost workers. Every call is one or two statements, and takes no
//! conversation's lock.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    Database,
    dialect::{list, words},
    sql::leases as sql,
};
use crate::api::{
    LostWorkers, Result, RunningAgentExecution, SeenLease, WorkerId, WorkerLease, WorkerLeases,
};
use crate::columns::narrow;

/// The most leases per read, more than any installation has workers. Leases beyond the limit are read once earlier
/// leases are gone.
const MAX_LEASES: i64 = 10_000;

#[async_trait]
impl WorkerLeases for Database {
    async fn renew_lease(&self, lease: &WorkerLease) -> Result<()> {
        let id = lease.worker.as_str();
        let lease_ms = i64::try_from(lease.duration.as_millis()).unwrap_or(i64::MAX);
        // A try that hangs leaves time for a second try.
        self.within(lease.duration / 2, async {
            let mut connection = self.sign_of_life().await?;
            let renewed = sqlx::query(sql::RENEW_LEASE)
                .bind(id)
                .bind(lease_ms)
                .execute(&mut *connection)
                .await?;
            if renewed.rows_affected() > 0 {
                return Ok(());
            }
            sqlx::query(sql::BEGIN_LEASE)
                .bind(id)
                .bind(&lease.identity)
                .bind(lease_ms)
                .execute(&mut *connection)
                .await?;
            Ok(())
        })
        .await
    }

    async fn end_lease(&self, worker: &WorkerId) -> Result<()> {
        self.in_time(async {
            sqlx::query(sql::END_LEASE)
                .bind(worker.as_str())
                .execute(&mut *self.single().await?)
                .await?;
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl LostWorkers for Database {
    async fn leases(&self) -> Result<Vec<SeenLease>> {
        let query = sqlx::query_as(sql::LEASES).bind(MAX_LEASES);
        let rows: Vec<(String, String, i64, i64, i64, bool)> =
            self.read(query.fetch_all(self.reader())).await?;
        let lease = |(id, identity, lease_ms, renewals, takes, is_ended)| {
            Ok(SeenLease {
                worker: WorkerId::from(id),
                identity,
                duration: Duration::from_millis(u64::try_from(lease_ms).unwrap_or_default()),
                renewals,
                takes: narrow(takes)?,
                is_ended,
            })
        };
        rows.into_iter().map(lease).collect()
    }

    async fn take_lease(&self, seen: &SeenLease) -> Result<Option<SeenLease>> {
        let query = sqlx::query_as(sql::TAKE_LEASE)
            .bind(seen.worker.as_str())
            .bind(seen.renewals);
        let mut taken: Vec<(i64, i64)> = self
            .in_time(async { Ok(query.fetch_all(&mut *self.single().await?).await?) })
            .await?;
        let Some((renewals, takes)) = taken.pop() else {
            return Ok(None);
        };
        Ok(Some(SeenLease {
            renewals,
            takes: narrow(takes)?,
            ..seen.clone()
        }))
    }

    async fn remove_lease(&self, taken: &SeenLease) -> Result<()> {
        self.in_time(async {
            sqlx::query(sql::REMOVE_LEASE)
                .bind(taken.worker.as_str())
                .bind(taken.renewals)
                .execute(&mut *self.single().await?)
                .await?;
            Ok(())
        })
        .await
    }

    async fn running_agent_executions(
        &self,
        workers: &[WorkerId],
        limit: u32,
    ) -> Result<Vec<RunningAgentExecution>> {
        let workers: Vec<_> = workers.iter().map(WorkerId::to_string).collect();
        let query = sqlx::query_as(words(sql::RUNNING_EXECUTIONS))
            .bind(list(&workers))
            .bind(i32::from(WorkerId::BYTES))
            .bind(i64::from(limit));
        self.read(query.fetch_all(self.reader())).await
    }
}
