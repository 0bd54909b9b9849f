//! The leases of worker processes. Workers renew their leases, and gateways find leases without renewals.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Result;

/// Shows that a worker process is alive. For workers.
#[async_trait]
pub trait WorkerLeases: Send + Sync {
    /// Renews the lease, or creates a missing lease. A worker renews its lease several times per lease duration,
    /// therefore the call gives up after half of the duration. The call never waits for a connection behind the other
    /// calls of the process.
    async fn renew_lease(&self, lease: &WorkerLease) -> Result<()>;

    /// Ends the lease of a worker that has stopped in an orderly way. The lease stays visible until a gateway has
    /// removed it, because Temporal may have given the worker a task that never arrived.
    async fn end_lease(&self, worker: &WorkerId) -> Result<()>;
}

/// Finds lost workers, and their agent executions. For gateways.
///
/// No clock decides. A gateway reads the leases again and again. A lease has expired if its `renewals` do not change
/// for the lease's duration. A lease that its worker has ended has expired at once.
///
/// Every call about leases uses the connection of [`WorkerLeases::renew_lease`], and gives up within 1.5 s. A gateway
/// therefore meets the database as a worker does: when the calls of a gateway are slow, renewals may be late, too.
#[async_trait]
pub trait LostWorkers: Send + Sync {
    /// Returns the leases of every worker, the first ten thousand by id.
    async fn leases(&self) -> Result<Vec<SeenLease>>;

    /// Raises the renewals of a lease with the same write as a renewal of its worker. Returns `None` if the worker has
    /// renewed the lease meanwhile, or if another gateway was faster. A quick answer shows that the worker could have
    /// renewed the lease. The call also keeps a taken lease from other gateways for another duration.
    async fn hold_lease(&self, seen: &SeenLease) -> Result<Option<SeenLease>>;

    /// Takes an expired lease. Only one gateway can take the lease, and handles the worker's agent executions. Returns
    /// `None` if the worker has renewed the lease meanwhile, or if another gateway was faster. Taking counts as a
    /// renewal: until its removal, the lease expires again and again.
    async fn take_lease(&self, seen: &SeenLease) -> Result<Option<SeenLease>>;

    /// Removes a lease that the gateway has taken, unless the worker has renewed the lease.
    async fn remove_lease(&self, taken: &SeenLease) -> Result<()>;

    /// Returns running agent executions, up to `limit`. Agent executions come first if one of the workers made their
    /// last LLM call or a tool's last attempt.
    async fn running_agent_executions(
        &self,
        workers: &[WorkerId],
        limit: u32,
    ) -> Result<Vec<RunningAgentExecution>>;
}

/// The most left-out tools that a worker tells. More tools do not fit into a short answer, and the log has all of them.
pub const MAX_LEFT_OUT_TOOLS: usize = 64;

/// The tools that workers leave out of requests to models. Workers write the list, and gateways show the list.
#[async_trait]
pub trait LeftOut: Send + Sync {
    /// Stores the tools that a worker leaves out, beside the worker's lease. The tools are gone with the lease.
    async fn tell_left_out(&self, worker: &WorkerId, tools: &[LeftOutTool]) -> Result<()>;

    /// Returns the tools that living workers leave out for a tenant, each once, in order.
    async fn left_out(&self, tenant_id: &str) -> Result<Vec<LeftOutTool>>;
}

/// A tool that is left out of requests to a model, because the model's provider would refuse every request with the tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeftOutTool {
    /// The tenant of the conversation.
    pub tenant_id: String,
    /// The agent.
    pub agent: String,
    /// The tool's name, as models see it.
    pub tool: String,
    /// `provider/model`.
    pub model: String,
    /// The reason, for the author of the tool.
    pub reason: String,
}

/// A worker process, from its start to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    /// The length of an id in bytes. Most events of a workflow's history have the id, therefore the id is short. 60
    /// random bits are enough for every worker of a deployment.
    pub(crate) const BYTES: u8 = 16;

    /// Makes a random id for a new process.
    pub fn random() -> Self {
        let mut id = uuid::Uuid::new_v4().simple().to_string();
        id.truncate(usize::from(Self::BYTES));
        Self(id.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a new name for an attempt of a tool, for [`claim_tool`](super::ToolClaims::claim_tool). Every
    /// call returns a different name, with the worker's id as its prefix.
    pub fn claimant(&self) -> String {
        format!("{}/{}", self.0, uuid::Uuid::new_v4().simple())
    }

    /// Returns Temporal's identity for the worker, which runs as `process`.
    pub fn identity(&self, process: &str) -> String {
        format!("{process}/{}", self.0)
    }

    /// Returns true if the identity belongs to the worker.
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

/// A worker's lease, for renewal.
#[derive(Debug, Clone)]
pub struct WorkerLease {
    /// The worker.
    pub worker: WorkerId,
    /// The worker's identity in Temporal.
    pub identity: String,
    /// The lease's duration without a renewal.
    pub duration: Duration,
}

/// A lease at the moment of a gateway's read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenLease {
    /// The worker.
    pub worker: WorkerId,
    /// The worker's identity in Temporal.
    pub identity: String,
    /// The lease's duration without a renewal.
    pub duration: Duration,
    /// The number of renewals and takes until the read.
    pub renewals: i64,
    /// The number of takes since the worker last renewed or ended the lease.
    pub takes: u32,
    /// True if the worker has ended the lease.
    pub is_ended: bool,
}

/// A running agent execution.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct RunningAgentExecution {
    /// The conversation.
    pub conversation_id: String,
    /// The tool execution that started the sub-agent; `None` for the turn's own agent.
    pub sub_agent_call: Option<String>,
    /// True if one of the given workers made the last LLM call, or an attempt of an open tool.
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
            "an identity without the worker's id"
        );
        assert_eq!(WorkerId::from(worker.to_string()), worker);
    }
}
