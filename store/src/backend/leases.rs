//! The leases of workers, and the agent executions of lost workers. Every call is one or two statements, and takes no
//! conversation's lock.

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;

use super::{
    Database,
    statement::Statement as _,
    statements::leases::{
        BeginLease, EndLease, HoldLease, Leases, LeftOut as LeftOutLists, RemoveLease, RenewLease,
        RunningExecutions, TakeLease, TellLeftOut,
    },
};
use crate::api::{
    LeftOut, LeftOutTool, LostWorkers, MAX_LEFT_OUT_TOOLS, Result, RunningAgentExecution,
    SeenLease, WorkerId, WorkerLease, WorkerLeases,
};
use crate::columns::narrow;

/// The most leases per read, more than any installation has workers. Leases beyond the limit are read once earlier
/// leases are gone.
const MAX_LEASES: i64 = 10_000;

/// How long a call of a gateway about leases may take. After a slower answer, the gateway trusts none of its earlier looks
/// anyway. The time is shorter than the default lease, so that a gateway soon leaves a dead connection.
const ANSWERED_WITHIN: Duration = Duration::from_millis(1500);

/// A row of [`Leases`]: id, identity, duration, renewals, takes, whether the worker has ended the lease.
type LeaseRow = (String, String, i64, i64, i64, bool);

#[async_trait]
impl WorkerLeases for Database {
    async fn renew_lease(&self, lease: &WorkerLease) -> Result<()> {
        let worker_id = lease.worker.as_str();
        let lease_ms = i64::try_from(lease.duration.as_millis()).unwrap_or(i64::MAX);
        // A try that hangs leaves time for a second try.
        self.sign_of_life(lease.duration / 2, async |connection| {
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
        self.sign_of_life(ANSWERED_WITHIN, async |connection| {
            let end = EndLease {
                worker_id: worker.as_str(),
            };
            end.query()?.execute(&mut *connection).await?;
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl LostWorkers for Database {
    async fn leases(&self) -> Result<Vec<SeenLease>> {
        let rows = self.sign_of_life(ANSWERED_WITHIN, async |connection| {
            let leases = Leases {
                row_limit: MAX_LEASES,
            };
            let rows: Vec<LeaseRow> = leases.query_as()?.fetch_all(&mut *connection).await?;
            Ok(rows)
        });
        let lease = |(id, identity, lease_ms, renewals, takes, is_ended): LeaseRow| {
            Ok(SeenLease {
                worker: WorkerId::from(id),
                identity,
                duration: Duration::from_millis(u64::try_from(lease_ms).unwrap_or_default()),
                renewals,
                takes: narrow(takes)?,
                is_ended,
            })
        };
        rows.await?.into_iter().map(lease).collect()
    }

    async fn hold_lease(&self, seen: &SeenLease) -> Result<Option<SeenLease>> {
        let renewals = self.sign_of_life(ANSWERED_WITHIN, async |connection| {
            let hold = HoldLease {
                worker_id: seen.worker.as_str(),
                seen_renewals: seen.renewals,
            };
            let mut held: Vec<i64> = hold.query_scalar()?.fetch_all(&mut *connection).await?;
            Ok(held.pop())
        });
        Ok(renewals.await?.map(|renewals| SeenLease {
            renewals,
            ..seen.clone()
        }))
    }

    async fn take_lease(&self, seen: &SeenLease) -> Result<Option<SeenLease>> {
        let taken = self.sign_of_life(ANSWERED_WITHIN, async |connection| {
            let take = TakeLease {
                worker_id: seen.worker.as_str(),
                seen_renewals: seen.renewals,
            };
            let mut taken: Vec<(i64, i64)> = take.query_as()?.fetch_all(&mut *connection).await?;
            Ok(taken.pop())
        });
        let Some((renewals, takes)) = taken.await? else {
            return Ok(None);
        };
        Ok(Some(SeenLease {
            renewals,
            takes: narrow(takes)?,
            ..seen.clone()
        }))
    }

    async fn remove_lease(&self, taken: &SeenLease) -> Result<()> {
        self.sign_of_life(ANSWERED_WITHIN, async |connection| {
            let remove = RemoveLease {
                worker_id: taken.worker.as_str(),
                taken_renewals: taken.renewals,
            };
            remove.query()?.execute(&mut *connection).await?;
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

/// The most workers whose left-out tools are read. Workers of one configuration leave out the same tools.
const MAX_TELLING_WORKERS: i64 = 100;

#[async_trait]
impl LeftOut for Database {
    async fn tell_left_out(&self, worker: &WorkerId, tools: &[LeftOutTool]) -> Result<()> {
        let told = &tools[..tools.len().min(MAX_LEFT_OUT_TOOLS)];
        // Texts always have a JSON form.
        let left_out_tools = serde_json::to_string(told).unwrap_or_default();
        self.sign_of_life(ANSWERED_WITHIN, async |connection| {
            let tell = TellLeftOut {
                worker_id: worker.as_str(),
                left_out_tools: &left_out_tools,
            };
            tell.query()?.execute(&mut *connection).await?;
            Ok(())
        })
        .await
    }

    async fn left_out(&self, tenant_id: &str) -> Result<Vec<LeftOutTool>> {
        let lists = LeftOutLists {
            none: "[]",
            row_limit: MAX_TELLING_WORKERS,
        };
        let query = lists.query_scalar()?;
        let lists: Vec<String> = self.read(query.fetch_all(self.reader())).await?;
        // A worker of another release may tell its tools in another form.
        let lists = lists
            .iter()
            .filter_map(|list| serde_json::from_str(list).ok());
        let tools: BTreeSet<LeftOutTool> = lists
            .flat_map(|list: Vec<LeftOutTool>| list)
            .filter(|tool| tool.tenant_id == tenant_id)
            .collect();
        Ok(tools.into_iter().collect())
    }
}
