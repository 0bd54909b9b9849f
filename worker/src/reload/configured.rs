//! The configuration of a process, with the tools of its agents.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use everturn_config::{Config, Reading, SeenFiles, Source};
use everturn_models::Providers;
use everturn_supervisor::launch::Launch;
use everturn_tools::{
    Tool, ToolRegistry,
    builtin::{self},
    egress::Egress,
    http::HttpTool,
    mcp::{McpServer, ServerLocation, ServerOptions},
    process, skills,
};

use crate::{cli::Common, roles::isolation};

/// The configuration of a process, with the files of the configuration.
pub struct Configured {
    /// The configuration.
    pub config: Config,
    /// The tools of agents. A gateway has none.
    pub tools: ToolRegistry,
    pub(super) source: Arc<Source>,
    pub(super) files: SeenFiles,
    kit: Option<Kit>,
}

/// The parts from which a worker makes the tools of every configuration.
struct Kit {
    /// The tools outside of the configuration.
    own: ToolRegistry,
    egress: Egress,
    /// Ports that programs may not connect to unless their rights name the ports.
    closed_ports: Vec<u16>,
    servers: Servers,
}

/// The MCP servers by name. A server with equal options keeps the connections.
/// The pause after a step's first refused call in the end-to-end tests.
const TEST_PAUSE: Duration = Duration::from_millis(20);

type Servers = BTreeMap<String, (ServerOptions, Arc<McpServer>)>;

/// The next configuration, ready for use.
pub(super) struct Next {
    pub(super) config: Config,
    pub(super) tools: ToolRegistry,
    servers: Servers,
}

impl Configured {
    /// Reads the configuration of a worker, whose agents have the built-in tools, the test tools if requested, `own`, and
    /// the configured tools. Programs may not connect to `closed_ports` unless their rights name the ports.
    pub fn for_worker(
        common: &Common,
        closed_ports: Vec<u16>,
        test_tools: Option<PathBuf>,
        own: Vec<Arc<dyn Tool>>,
    ) -> anyhow::Result<Self> {
        let is_test = test_tools.is_some();
        let test_tools = test_tools.map(builtin::test_tools).unwrap_or_default();
        let own = ToolRegistry::of(builtin::all().into_iter().chain(test_tools).chain(own))?;
        let source = Source::of_worker(common.config.as_deref(), own.names());
        let Reading { files, config } = source.read();
        let mut config = config?;
        if is_test {
            config.worker.refusal_pause = TEST_PAUSE;
        }
        let egress =
            Egress::new(config.egress.clone()).context("cannot set up the HTTP client of tools")?;
        config.close_ports(&closed_ports);
        process::start_with(Launch::confined(config.processes.clone()));
        let mut kit = Kit {
            own,
            egress,
            closed_ports,
            servers: Servers::new(),
        };
        let (tools, servers) = kit.tools(&config)?;
        kit.servers = servers;
        Ok(Self {
            config,
            tools,
            source: Arc::new(source),
            files,
            kit: Some(kit),
        })
    }

    /// Returns the MCP servers by name. A gateway has none.
    pub fn servers(&self) -> Vec<(String, Arc<McpServer>)> {
        let servers = self.kit.iter().flat_map(|kit| &kit.servers);
        servers
            .map(|(name, (_, server))| (name.clone(), Arc::clone(server)))
            .collect()
    }

    /// Reads the configuration of a gateway.
    pub fn for_gateway(common: &Common) -> anyhow::Result<Self> {
        let source = Source::of_gateway(common.config.as_deref());
        let Reading { files, config } = source.read();
        Ok(Self {
            config: config?,
            tools: ToolRegistry::new(),
            source: Arc::new(source),
            files,
            kit: None,
        })
    }

    /// Makes the next configuration. `providers` are the providers of the running process.
    pub(super) fn next(&self, read: Config, providers: &Providers) -> anyhow::Result<Next> {
        let mut config = self.config.reloaded(read, providers)?;
        if let Some(kit) = &self.kit {
            config.close_ports(&kit.closed_ports);
        }
        let (tools, servers) = match &self.kit {
            Some(kit) => kit.tools(&config)?,
            None => (ToolRegistry::new(), Servers::new()),
        };
        Ok(Next {
            config,
            tools,
            servers,
        })
    }

    /// Takes the next configuration over, and returns the MCP servers without a further use.
    pub(super) fn take(&mut self, next: Next) -> Vec<Arc<McpServer>> {
        self.config = next.config;
        self.tools = next.tools;
        let Some(kit) = &mut self.kit else {
            return Vec::new();
        };
        let earlier = std::mem::replace(&mut kit.servers, next.servers);
        let is_used = |server: &Arc<McpServer>| {
            let mut used = kit.servers.values();
            used.any(|(_, used)| Arc::ptr_eq(used, server))
        };
        let servers = earlier.into_values().map(|(_, server)| server);
        servers.filter(|server| !is_used(server)).collect()
    }
}

impl Kit {
    fn tools(&self, config: &Config) -> anyhow::Result<(ToolRegistry, Servers)> {
        isolation::check(config)?;
        let (mut tools, egress) = (self.own.clone(), &self.egress);
        for definition in &config.http_tools {
            tools.register(Arc::new(HttpTool::new(definition.clone(), egress.clone())))?;
        }
        // MCP servers start at the first use.
        let mut servers = Servers::new();
        for options in &config.mcp {
            if let ServerLocation::Unusable { reason } = &options.location {
                let server = &options.name;
                tracing::warn!(server, reason, "an MCP server cannot be used");
            }
            let earlier = self.servers.get(&options.name);
            let earlier = earlier.filter(|(earlier, _)| earlier == options);
            let server = earlier.map_or_else(
                || Arc::new(McpServer::new(options.clone(), egress.clone())),
                |(_, server)| Arc::clone(server),
            );
            tools.add_source(&options.name, Arc::clone(&server) as _)?;
            servers.insert(options.name.clone(), (options.clone(), server));
        }
        tools.add_source(skills::SOURCE, Arc::new(config.skills.clone()))?;
        for tool in &config.described_tools {
            tools.register(Arc::new(tool.clone()))?;
        }
        Ok((tools, servers))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{fs, path::Path};

    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    const AGENT: &str = "[agents.a]\nprovider = \"demo\"\nmodel = \"m\"\n";

    fn configured(file: &Path) -> Configured {
        let command = [
            "everturn",
            "--config",
            file.to_str().unwrap(),
            "config",
            "check",
        ];
        let common = Cli::try_parse_from(command).unwrap().common;
        Configured::for_worker(&common, Vec::new(), None, Vec::new()).unwrap()
    }

    /// Writes the file and takes the change over.
    fn reload(configured: &mut Configured, file: &Path, text: &str) -> Vec<Arc<McpServer>> {
        fs::write(file, format!("{AGENT}{text}")).unwrap();
        let read = configured.source.read().config.unwrap();
        let next = configured.next(read, &Providers::default()).unwrap();
        configured.take(next)
    }

    fn server(configured: &Configured, name: &str) -> Arc<McpServer> {
        Arc::clone(&configured.kit.as_ref().unwrap().servers[name].1)
    }

    #[test]
    fn an_unchanged_server_stays_and_a_changed_server_is_handed_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("everturn.toml");
        let table = |name: &str, url: &str| format!("[mcp.{name}]\nurl = \"http://{url}/\"\n");
        let both = table("one", "a") + &table("two", "a");
        fs::write(&file, format!("{AGENT}{both}")).unwrap();
        let mut configured = configured(&file);
        let (one, two) = (server(&configured, "one"), server(&configured, "two"));
        let unused = reload(&mut configured, &file, &format!("{both}# Later\n"));
        assert!(unused.is_empty() && Arc::ptr_eq(&one, &server(&configured, "one")));
        let changed = table("one", "a") + &table("two", "b");
        let unused = reload(&mut configured, &file, &changed);
        assert_eq!(unused.len(), 1);
        assert!(Arc::ptr_eq(&unused[0], &two));
        assert!(!Arc::ptr_eq(&two, &server(&configured, "two")));
        let unused = reload(&mut configured, &file, "");
        assert_eq!(unused.len(), 2);
        assert!(!configured.tools.may_have("one__x"));
    }

    /// A month with a change every few minutes.
    #[test]
    fn no_earlier_configuration_stays_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("everturn.toml");
        fs::write(&file, AGENT).unwrap();
        let mut configured = configured(&file);
        let mut earlier = Vec::new();
        for number in 0..300 {
            let server = format!("[mcp.s{number}]\nurl = \"http://localhost/{number}\"\n");
            let tool = format!("[client_tools.t{number}]\ndescription = \"x\"\n");
            drop(reload(&mut configured, &file, &format!("{server}{tool}")));
            let (_, server) = &configured.kit.as_ref().unwrap().servers[&format!("s{number}")];
            earlier.push(Arc::downgrade(server));
        }
        let kept = earlier.iter().filter(|server| server.strong_count() > 0);
        assert_eq!(kept.count(), 1);
        assert_eq!(configured.config.described_tools.len(), 1);
    }
}
