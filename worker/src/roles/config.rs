//! `everturn config check`: reports mistakes in the configuration, and shows the configuration. Connects to no server,
//! except with `--try` to the MCP servers.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use everturn_config::{Config, ConfigError, DEFAULT_FILE};
use everturn_models::Provider;
use everturn_proto::{Responsible, words::DEFAULT_TENANT};
use everturn_terminal::show;
use everturn_tools::{Tool, mcp::ServerLocation};
use futures::future::join_all;

use super::{gateway::check_exposure, tools::status};
use crate::{
    cli::{CheckConfig, Common},
    connections, own_ports,
    reload::Configured,
    transport,
};

/// Prints the findings. The exit code is 0 if the whole configuration is valid, otherwise 1.
pub async fn check(
    common: &Common,
    options: CheckConfig,
    own: Vec<Arc<dyn Tool>>,
) -> anyhow::Result<ExitCode> {
    let mut report = Report::default();
    let configured = report.file(common, options.test_tools.effects_file, own);
    let config = configured.as_ref().map(|configured| &configured.config);
    if let Some(config) = config {
        let exposed = check_exposure(&options.listen, config);
        report.add(
            "gateway",
            exposed.map(|()| gateway(options.listen.listen, config)),
        );
    }
    let database = common.database();
    let checked = everturn_store::check_url(&database).map_err(anyhow::Error::from);
    let checked = checked.and_then(|()| transport::check_database(common));
    report.add(
        "database",
        checked.map(|()| connections::without_password(&database)),
    );
    report.add("redis", connections::stream(common).map(|_| redis(common)));
    report.add("temporal", connections::describe_temporal(common));
    if let Some(config) = config {
        report.add("codec", config.codec.describe());
    }
    report.add("task queue", Ok(common.task_queue.clone()));
    report.add("log", Ok(common.log_format.to_string()));
    if let Some(configured) = &configured {
        let config = &configured.config;
        print_providers(config);
        print_agents(config);
        if options.tries_servers {
            report.try_servers(configured).await;
        } else {
            report.unusable_servers(config);
        }
        configured.tools.close().await;
    }
    Ok(report.end())
}

/// Prints the results, and counts mistakes.
#[derive(Default)]
struct Report {
    problems: usize,
}

impl Report {
    fn add(&mut self, what: &str, checked: anyhow::Result<String>) {
        match checked {
            Ok(found) => println!("✓ {what:<14} {found}"),
            Err(error) => {
                self.problems += 1;
                println!("✗ {what:<14} {error:#}");
            }
        }
    }

    /// Checks the configuration file and the configured tools.
    fn file(
        &mut self,
        common: &Common,
        test_tools: Option<PathBuf>,
        own: Vec<Arc<dyn Tool>>,
    ) -> Option<Configured> {
        let name = match common.config.as_deref() {
            Some(path) => path.display().to_string(),
            None if Path::new(DEFAULT_FILE).exists() => DEFAULT_FILE.to_owned(),
            None => format!("no {DEFAULT_FILE} in this directory: built-in defaults"),
        };
        let error = match Configured::for_worker(common, own_ports::of(common), test_tools, own) {
            Ok(configured) => {
                println!("✓ {:<14} {name}", "configuration");
                return Some(configured);
            }
            Err(error) => error,
        };
        let Some(ConfigError::Wrong(problems)) = error.downcast_ref() else {
            self.add("configuration", Err(error));
            return None;
        };
        self.problems += problems.len();
        println!("✗ {:<14} {name}", "configuration");
        for problem in problems {
            let key = problem.key.as_deref().unwrap_or_default();
            println!(
                "    {}  {key}\n        {}",
                problem.location, problem.message
            );
        }
        None
    }

    /// Starts or reaches each MCP server once, at the same time.
    async fn try_servers(&mut self, configured: &Configured) {
        let servers = configured.servers();
        let found = servers
            .iter()
            .map(|(_, server)| server.status(DEFAULT_TENANT));
        let found = join_all(found).await;
        if !found.is_empty() {
            println!("\nMCP servers");
        }
        for server in &found {
            let words = status::in_words(server);
            if status::is_available(server) {
                println!("  ✓ {:<14} {words}", server.name);
                continue;
            }
            self.problems += 1;
            println!("  ✗ {:<14} {words}", server.name);
            for line in status::output(server) {
                println!("      {}", show::shortened(line));
            }
        }
    }

    /// Prints the MCP servers that lack a value. A worker starts without them.
    fn unusable_servers(&mut self, config: &Config) {
        for server in &config.mcp {
            if let ServerLocation::Unusable { reason } = &server.location {
                let name = format!("mcp.{}", server.name);
                self.add(&name, Err(anyhow::anyhow!("{reason}")));
            }
        }
    }

    fn end(&self) -> ExitCode {
        match self.problems {
            0 => return ExitCode::SUCCESS,
            1 => eprintln!("everturn: 1 problem"),
            count => eprintln!("everturn: {count} problems"),
        }
        ExitCode::FAILURE
    }
}

fn gateway(listen: SocketAddr, config: &Config) -> String {
    let auth = &config.gateway.auth;
    let issuers = auth.oidc.iter().map(|oidc| oidc.issuer.as_str());
    let issuers = issuers.collect::<Vec<_>>().join(" or ");
    let callers = match (auth.required, issuers.is_empty()) {
        (true, false) => format!("callers need a key, a session or a token of {issuers}"),
        (true, true) => "callers need a key or a session".to_owned(),
        (false, _) => "callers need no credential".to_owned(),
    };
    format!("{listen}, {callers}")
}

fn redis(common: &Common) -> String {
    common.redis.as_deref().map_or_else(
        || {
            "none: unfinished texts of models reach only gateways in the worker's process"
                .to_owned()
        },
        connections::without_password,
    )
}

fn print_providers(config: &Config) {
    println!("\nproviders");
    for (name, provider) in &config.providers {
        println!("  {name:<14} {}", about_provider(provider));
    }
    if config.needs_demo_model() {
        println!(
            "  demo           no provider's key is configured: `everturn dev` answers with a set of rules, and \
             `everturn worker` does not start"
        );
    }
}

/// Describes the provider's address and protocol, but never its key.
fn about_provider(provider: &Provider) -> String {
    let wire = provider.kind.as_str();
    let address = provider.base_url.as_deref();
    let key = match provider.api_key {
        Some(_) => "has a key",
        None => "no key",
    };
    format!(
        "{wire}, {}, {key}",
        address.unwrap_or("the provider's own address")
    )
}

fn print_agents(config: &Config) {
    println!("\nagents");
    if config.has_implied_agent {
        println!(
            "  no agent is configured: `everturn dev` has the agent below, and `everturn worker` does not start"
        );
    }
    for agent in &config.agents {
        let timeout = Duration::from_millis(agent.llm_total_timeout_ms.into());
        println!(
            "  {:<14} {} at {}, at most {} steps of {}",
            agent.name,
            agent.model.as_deref().unwrap_or_default(),
            agent.provider,
            agent.max_steps,
            humantime::format_duration(timeout)
        );
        print_owner(config, &agent.name);
        let tools: Vec<_> = agent.tools.iter().map(|tool| tool.name.as_str()).collect();
        if !tools.is_empty() {
            println!("  {:<14} tools: {}", "", show::shortened(&tools.join(", ")));
        }
    }
}

/// Prints whom to ask about the agent.
fn print_owner(config: &Config, agent: &str) {
    let mut offered = config.gateway.agents.iter();
    let Some(agent) = offered.find(|offered| offered.definition.name == agent) else {
        return;
    };
    let Responsible { owner, contact } = &agent.responsible;
    let parts: Vec<_> = owner.iter().chain(contact).map(String::as_str).collect();
    if !parts.is_empty() {
        println!("  {:<14} owner: {}", "", show::shortened(&parts.join(", ")));
    }
}
