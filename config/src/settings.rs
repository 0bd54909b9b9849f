//! The checked configuration, with every default filled in.

use std::{collections::BTreeMap, time::Duration};

use everturn_activities::TenantBudgets;
use everturn_gateway::GatewayConfig;
use everturn_models::Providers;
use everturn_proto::{
    Responsible,
    turn::AgentDefinition,
    words::{AnswersFrom, ApprovalBy},
};
use everturn_store::{PostgresOptions, StoreOptions};
use everturn_supervisor::launch::Policy;
use everturn_tools::{
    DescribedTool,
    egress::EgressPolicy,
    http::HttpToolDefinition,
    mcp::{ServerLocation, ServerOptions},
    skills::Skills,
};

use super::{blobs::BlobsConfig, codec::CodecConfig, worker::WorkerLimits};

/// Name of the provider that stands for the demo model.
pub const DEMO_PROVIDER: &str = "demo";

/// The checked configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// SHA-256 of the text of everturn.toml and of the texts in `agents.d`, in hexadecimal digits.
    pub hash: String,
    /// The operator's tables as written, to notice a change of them in a running process.
    pub(super) operators: toml::Table,
    /// The agents. A worker's configuration without an agent gets the agent `default`.
    pub agents: Vec<AgentDefinition>,
    /// True if the files have no agent, so that `agents` has only the built-in agent `default`.
    pub has_implied_agent: bool,
    /// How often a running process looks at the files; `None` if changes need a restart.
    pub reload: Option<Duration>,
    /// The most agents, and the most tools, with a label of their own in metrics.
    pub max_metric_names: usize,
    /// The accepted ways to answer an approval.
    pub approval_answers: AnswersFrom,
    /// The tenants' daily budgets for models.
    pub tenant_budgets: TenantBudgets,
    /// Providers of models, without the demo model. At a gateway, the providers have no keys.
    pub providers: Providers,
    /// Tools that are HTTP endpoints. A gateway's list is empty.
    pub http_tools: Vec<HttpToolDefinition>,
    /// Tools of clients and of remote workers. A gateway's list is empty.
    pub described_tools: Vec<DescribedTool>,
    /// Addresses that tools may connect to.
    pub egress: EgressPolicy,
    /// MCP servers, for workers.
    pub mcp: Vec<ServerOptions>,
    /// Limits of the tools' programs.
    pub processes: Policy,
    /// Skills. A gateway has no skills.
    pub skills: Skills,
    /// The configuration of images and files.
    pub blobs: BlobsConfig,
    /// The encryption of payloads in Temporal.
    pub codec: CodecConfig,
    /// Limits of a worker.
    pub worker: WorkerLimits,
    /// The pool of connections to PostgreSQL.
    pub postgres: PostgresOptions,
    /// The gateway's limits and its authentication.
    pub gateway: GatewayConfig,
    /// `poll_interval` of `[gateway]`, if it is set. Otherwise, the kind of stream decides the interval.
    pub poll_interval: Option<Duration>,
}

impl Config {
    /// Closes ports to every program: a program connects to them only where its rights open the ports by name.
    pub fn close_ports(&mut self, ports: &[u16]) {
        ports.clone_into(&mut self.processes.access.closed_ports);
        for server in &mut self.mcp {
            if let ServerLocation::Command { launch, .. } = &mut server.location {
                *launch = launch.clone().closing(ports);
            }
        }
    }

    /// Returns the pool of a worker. The pool needs a connection for each slot of an activity and for each slot of a
    /// local activity. Workflow tasks make no database calls.
    pub fn worker_pool(&self) -> PostgresOptions {
        let slots = self.worker.max_concurrent_activities.saturating_mul(2);
        PostgresOptions {
            max_calls: Some(u32::try_from(slots).unwrap_or(u32::MAX)),
            ..self.postgres.clone()
        }
    }

    /// Returns the options of the store with a pool. The store writes the audit entries of answers through the engine.
    pub fn store(&self, postgres: PostgresOptions) -> StoreOptions {
        StoreOptions {
            postgres,
            audit_keep_days: Some(self.gateway.audit.keep_days),
            ..StoreOptions::default()
        }
    }

    /// Returns the persons who are responsible for each agent, by the agent's name.
    pub fn responsible(&self) -> BTreeMap<String, Responsible> {
        let offered = self.gateway.agents.iter();
        let named = offered.map(|agent| (agent.definition.name.clone(), agent.responsible.clone()));
        named.collect()
    }

    /// Returns an agent and its tool with approvals `by = "other"`: a second person must approve the calls, not the
    /// requester. Returns `None` without a tool of that policy.
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

    /// True when the demo model has to answer for an agent, because no provider's key is configured.
    pub fn needs_demo_model(&self) -> bool {
        !self.providers.contains_key(DEMO_PROVIDER)
            && self
                .agents
                .iter()
                .any(|agent| agent.provider == DEMO_PROVIDER)
    }
}
