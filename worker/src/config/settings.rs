//! What a configuration says, checked and with every default filled in.

use std::time::Duration;

use everturn_activities::{
    TenantBudgets,
    egress::EgressPolicy,
    model::Providers,
    tools::{DescribedTool, http::HttpToolDefinition, mcp::ServerOptions, skills::Skills},
};
use everturn_gateway::GatewayConfig;
use everturn_proto::{
    turn::AgentDefinition,
    words::{AnswersFrom, ApprovalBy},
};
use everturn_store::PostgresOptions;
use everturn_supervisor::launch::Policy;

use super::{blobs::BlobsConfig, codec::CodecConfig, worker::WorkerLimits};

/// Name of the provider that stands for the demo model.
pub const DEMO_PROVIDER: &str = "demo";

/// What is configured.
#[derive(Debug, Clone)]
pub struct Config {
    /// SHA-256 of the file's text, in hexadecimal digits.
    pub hash: String,
    /// Agents, `default` always among them.
    pub agents: Vec<AgentDefinition>,
    /// Which answers to approvals are taken.
    pub approval_answers: AnswersFrom,
    /// What tenants may take of models on a day.
    pub tenant_budgets: TenantBudgets,
    /// Providers of models, without the demo model. A gateway's have no keys.
    pub providers: Providers,
    /// Endpoints that are tools; none for a gateway.
    pub http_tools: Vec<HttpToolDefinition>,
    /// Tools that the client or other workers run; none for a gateway.
    pub described_tools: Vec<DescribedTool>,
    /// Where tools may connect to.
    pub egress: EgressPolicy,
    /// MCP servers, for workers.
    pub mcp: Vec<ServerOptions>,
    /// What the programs of tools may do.
    pub processes: Policy,
    /// Skills; none for a gateway.
    pub skills: Skills,
    /// Images and files.
    pub blobs: BlobsConfig,
    /// What is encrypted of all that goes through Temporal.
    pub codec: CodecConfig,
    /// Limits of a worker.
    pub worker: WorkerLimits,
    /// The pool of connections to PostgreSQL.
    pub postgres: PostgresOptions,
    /// The gateway's limits, and who may call it.
    pub gateway: GatewayConfig,
    /// `poll_interval` of `[gateway]`, when it is set. What it is otherwise depends on the stream.
    pub poll_interval: Option<Duration>,
}

impl Config {
    /// The pool of a worker, which knows how many calls the worker makes at once: one in each slot of an activity, and
    /// one in each slot of a local activity. Workflow tasks make none.
    pub fn worker_pool(&self) -> PostgresOptions {
        let slots = self.worker.max_concurrent_activities.saturating_mul(2);
        PostgresOptions {
            max_calls: Some(u32::try_from(slots).unwrap_or(u32::MAX)),
            ..self.postgres.clone()
        }
    }

    /// A tool whose calls somebody else than who asked has to approve, and its agent; `None` when there is none.
    pub fn needs_other(&self) -> Option<(&str, &str)> {
        let tools = self.agents.iter().flat_map(|agent| {
            let tools = agent.tools.iter();
            tools.map(|tool| (agent.name.as_str(), tool))
        });
        let mut asking = tools.filter(|(_, tool)| {
            let policy = tool.approval.as_ref();
            policy.is_some_and(|policy| policy.approvers() == ApprovalBy::Other)
        });
        asking
            .next()
            .map(|(agent, tool)| (agent, tool.name.as_str()))
    }

    /// True when an agent is to be answered by the demo model: no provider's key is configured.
    pub fn needs_demo_model(&self) -> bool {
        !self.providers.contains_key(DEMO_PROVIDER)
            && self
                .agents
                .iter()
                .any(|agent| agent.provider == DEMO_PROVIDER)
    }
}
