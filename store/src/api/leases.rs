//! The leases of worker processes: workers renew them, and gateways see whose has stopped.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::Result;

/// Says that this worker process lives. For workers.
#[async_trait]
pub trait WorkerLeases: Send + Sync {
    /// Renews the lease, or makes it when there is none. It is renewed several times in its duration, so this gives up
    /// after half of it.
    async fn renew_lease(&self, lease: &WorkerLease) -> Result<()>;

    /// Ends the lease of a worker that has stopped by itself and runs nothing any more. Gateways see it until one of them
    /// has removed it: the engine may have given the worker a task that did not reach it.
    async fn end_lease(&self, worker: &WorkerId) -> Result<()>;
}

/// Finds the workers that were lost, and what they ran. For gateways.
///
/// No clock decides: a gateway reads the leases again and again, and one whose `renewals` stand still for its duration
/// is over. One that its worker has ended is over at once.
#[async_trait]
pub trait LostWorkers: Send + Sync {
    /// Returns the leases of all workers, the first ten thousand by their ids.
    async fn leases(&self) -> Result<Vec<SeenLease>>;

    /// Takes a lease that is over, so that one gateway sees to what the worker ran. `None` when the worker has renewed it
    /// since it was seen, or another gateway was quicker. Taking it counts as a renewal: until it is removed, it is over
    /// again and again.
    async fn take_lease(&self, seen: &SeenLease) -> Result<Option<SeenLease>>;

    /// Removes a lease that this gateway has taken, unless it was renewed.
    async fn remove_lease(&self, taken: &SeenLease) -> Result<()>;

    /// Returns agent executions that run, up to a limit: first those in which one of these workers made the last LLM call
    /// or the last attempt of a tool.
    async fn running_agent_executions(
        &self,
        workers: &[WorkerId],
        limit: u32,
    ) -> Result<Vec<RunningAgentExecution>>;
}

/// A worker process, from its start to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    /// The length of an id in bytes. It is in most events of a history, so it is no longer than it must be: 60 random bits
    /// tell all workers of a deployment apart.
    pub(crate) const BYTES: u8 = 16;

    /// Makes the id of a process that has just started.
    pub fn random() -> Self {
        let mut id = uuid::Uuid::new_v4().simple().to_string();
        id.truncate(usize::from(Self::BYTES));
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Names one attempt of a tool, for [`TurnStore::claim_tool`](super::TurnStore::claim_tool). Each call gives another
    /// name, and all of them begin with the id.
    pub fn claimant(&self) -> String {
        format!("{}/{}", self.0, uuid::Uuid::new_v4().simple())
    }

    /// What the engine calls a worker with this id, which runs as `process`.
    pub fn identity(&self, process: &str) -> String {
        format!("{process}/{}", self.0)
    }

    /// True when this is what the engine calls the worker.
    pub fn is_called(&self, identity: &str) -> bool {
        identity.rsplit_once('/').map(|(_, id)| id) == Some(self.as_str())
    }
}

impl From<String> for WorkerId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The lease that a worker renews.
#[derive(Debug, Clone)]
pub struct WorkerLease {
    /// The worker.
    pub worker: WorkerId,
    /// What the engine calls it.
    pub identity: String,
    /// How long it lasts without a renewal.
    pub duration: Duration,
}

/// A lease as a gateway saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenLease {
    /// Whose it is.
    pub worker: WorkerId,
    /// What the engine calls the worker.
    pub identity: String,
    /// How long it lasts without a renewal.
    pub duration: Duration,
    /// How often it was renewed or taken by then.
    pub renewals: i64,
    /// How often it was taken since its worker renewed or ended it.
    pub takes: u32,
    /// True when its worker has ended it.
    pub is_ended: bool,
}

/// An agent execution that runs.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct RunningAgentExecution {
    /// Its conversation.
    pub conversation_id: String,
    /// The tool execution that started the sub-agent; `None` for the turn's own agent.
    pub sub_agent_call: Option<String>,
    /// True when one of the workers that were asked for made its last LLM call, or an attempt of one of its open tools.
    pub is_held: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_known_by_its_claims_and_its_identity() {
        let (worker, other) = (WorkerId::random(), WorkerId::random());
        assert_eq!(worker.as_str().len(), usize::from(WorkerId::BYTES));
        let claimants = [worker.claimant(), worker.claimant()];
        assert_ne!(claimants[0], claimants[1]);
        assert!(claimants.iter().all(|it| it.starts_with(worker.as_str())));
        let identity = worker.identity("7@host/of/many/parts");
        assert!(worker.is_called(&identity) && !other.is_called(&identity));
        assert!(
            !worker.is_called("7@host"),
            "a worker of an earlier release"
        );
        assert_eq!(WorkerId::from(worker.to_string()), worker);
    }
}
