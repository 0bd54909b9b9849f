//! The tables of the whole file, and the order of their checks.

use std::collections::BTreeMap;

use everturn_gateway::{GatewayConfig, OfferedAgent};
use everturn_tools::mcp::ServerOptions;
use serde::Deserialize;
use toml::Spanned;

use super::{
    agents::{self, AgentTable},
    approvals::ApprovalsTable,
    audit::AuditTable,
    auth::AuthTable,
    blobs::BlobsTable,
    budgets::{self, TenantBudgetTable},
    checker::{Checker, ReadBy},
    codec::{CodecConfig, CodecTable},
    gateway::GatewayTable,
    limits::LimitsTable,
    metrics::MetricsTable,
    models::{ModelTable, Models},
    names::Names,
    postgres::PostgresTable,
    processes::ProcessTable,
    providers::{self, ProviderTable},
    reconciler::ReconcilerTable,
    reload::ReloadTable,
    settings::Config,
    tools::{
        client::{self, ClientToolTable},
        egress::EgressTable,
        http::{self, HttpToolTable},
        mcp::{self, McpTables},
        remote::{self, RemoteToolTable},
        skills::SkillsTable,
    },
    worker::WorkerTable,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    providers: BTreeMap<Spanned<String>, ProviderTable>,
    models: BTreeMap<Spanned<String>, ModelTable>,
    agents: BTreeMap<Spanned<String>, AgentTable>,
    approvals: ApprovalsTable,
    tenant_budget: TenantBudgetTable,
    tools: BTreeMap<Spanned<String>, HttpToolTable>,
    client_tools: BTreeMap<Spanned<String>, ClientToolTable>,
    remote_tools: BTreeMap<Spanned<String>, RemoteToolTable>,
    egress: EgressTable,
    mcp: McpTables,
    processes: ProcessTable,
    skills: SkillsTable,
    limits: LimitsTable,
    blobs: BlobsTable,
    codec: CodecTable,
    worker: WorkerTable,
    auth: AuthTable,
    audit: AuditTable,
    gateway: GatewayTable,
    reconciler: ReconcilerTable,
    reload: ReloadTable,
    metrics: MetricsTable,
    postgres: PostgresTable,
}

impl File {
    /// Checks all tables. Tables of tools come before the agents' tables, because agents refer to tools by name.
    pub(super) fn check(self, check: &mut Checker<'_>, read_by: ReadBy<'_>) -> Config {
        let mut names = Names::new(read_by);
        let providers = providers::check(self.providers, check);
        let http_tools = http::check(&self.tools, check, &mut names);
        let mut described_tools = client::check(&self.client_tools, check, &mut names);
        described_tools.extend(remote::check(&self.remote_tools, check, &mut names));
        let egress = self.egress.check(check);
        let processes = self.processes.check_general(check);
        let mcp = mcp::check(self.mcp, &processes, check, &mut names);
        let codec = self.codec.check(check);
        check_consents(&mcp, &codec, check);
        if check.is_of_worker() {
            names.skills = Some(self.skills.check(check));
        }
        let models = Models::check(&self.models, check);
        let tenant_budgets = self.tenant_budget.check(check);
        let limits = agents::money_limits(&self.agents);
        let mut samples = agents::samples(&self.agents, check);
        let mut responsible = agents::responsible(&self.agents, check);
        let has_implied_agent = self.agents.is_empty() && check.is_of_worker();
        let agents = agents::check(self.agents, check, &mut names, &models, &providers);
        if check.is_of_worker() {
            budgets::check_prices(check, &agents, &limits, &self.tenant_budget);
        }
        let poll_interval = self.gateway.poll_interval(check);
        let gateway = self.gateway.check(check);
        let gateway = self.limits.check(check, gateway);
        let gateway = GatewayConfig {
            agents: agents
                .iter()
                .map(|agent| OfferedAgent {
                    definition: agent.clone(),
                    samples: samples.remove(&agent.name).unwrap_or_default(),
                    responsible: responsible.remove(&agent.name).unwrap_or_default(),
                })
                .collect(),
            auth: self.auth.check(check),
            audit: self.audit.check(check),
            reconciler: self.reconciler.check(check),
            ..gateway
        };
        Config {
            hash: String::new(),
            operators: toml::Table::new(),
            agents,
            has_implied_agent,
            reload: self.reload.check(check),
            max_metric_names: self.metrics.check(check),
            approval_answers: self.approvals.answers_from(),
            tenant_budgets,
            providers,
            http_tools,
            described_tools,
            egress,
            mcp,
            processes: processes.policy(),
            skills: names.skills.unwrap_or_default(),
            blobs: self.blobs.check(check),
            codec,
            worker: self.worker.check(check),
            postgres: self.postgres.check(check),
            gateway,
            poll_interval,
        }
    }
}

/// Refuses a server that people consent to without keys for their tokens.
fn check_consents(servers: &[ServerOptions], codec: &CodecConfig, check: &mut Checker<'_>) {
    let server = servers.iter().find(|server| server.needs_consent());
    if let Some(ServerOptions { name, .. }) = server.filter(|_| !codec.has_keys()) {
        check.missing(format!(
            "[mcp.{name}.oauth] with the grant `authorization_code` needs `keys_env` or `keys_file` in [codec], whose keys \
             seal the tokens of people in the database"
        ));
    }
}
