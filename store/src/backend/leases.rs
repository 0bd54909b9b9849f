//! The leases of workers, and the agent executions of lost workers. Every call is one or two statements, and takes no
//! conversation's lock.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    Database,
    statement::Statement as _,
    statements::leases::{
        BeginLease, EndLease, Leases, RemoveLease, RenewLease, RunningExecutions, TakeLease,
    },
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
        let worker_id = lease.worker.as_str();
        let lease_ms = i64::try_from(lease.duration.as_millis()).unwrap_or(i64::MAX);
        // A try that hangs leaves time for a second try.
        self.within(lease.duration / 2, async {
            let mut connection = self.sign_of_life().await?;
            let renew = RenewLease {
                worker_id,
                lease_ms,
            };
            let renewed = renew.query()?.execute(&mut *connection).await?;
            if renewed.rows_affected() > 0 {
                return Ok(());
            }
            let begin = BeginLease {
                worker_id,
                identity: &lease.identity,
                lease_ms,
            };
            begin.query()?.execute(&mut *connection).await?;
            Ok(())
        })
        .await
    }

    async fn end_lease(&self, worker: &WorkerId) -> Result<()> {
        self.in_time(async {
            let end = EndLease {
                worker_id: worker.as_str(),
            };
            end.query()?.execute(&mut *self.single().await?).await?;
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl LostWorkers for Database {
    async fn leases(&self) -> Result<Vec<SeenLease>> {
        let query = Leases {
            row_limit: MAX_LEASES,
        }
        .query_as()?;
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
        let take = TakeLease {
            worker_id: seen.worker.as_str(),
            seen_renewals: seen.renewals,
        };
        let query = take.query_as()?;
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
            let remove = RemoveLease {
                worker_id: taken.worker.as_str(),
                taken_renewals: taken.renewals,
            };
            remove.query()?.execute(&mut *self.single().await?).await?;
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
        let running = RunningExecutions {
            worker_ids: &workers,
            worker_id_length: i32::from(WorkerId::BYTES),
            row_limit: i64::from(limit),
        };
        let query = running.query_as()?;
        self.read(query.fetch_all(self.reader())).await
    }
}
