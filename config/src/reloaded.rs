//! The next configuration of a running process, after a change of the files.
//!
//! A running process takes over what authors of agents write, and skills. The operator's tables stay as they were at the
//! start, because connections, limits and keys are set up only once.

use std::{collections::BTreeSet, fmt};

use everturn_gateway::OfferedAgent;
use everturn_models::Providers;
use everturn_proto::turn::AgentDefinition;
use everturn_tools::{DescribedTool, skills};

use super::settings::{Config, DEMO_PROVIDER};

/// A change that needs a restart of the process.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Only the new tables of the operator have the provider.
    #[error(
        "agent `{agent}` names the provider `{provider}`, which the running process does not have; restart the process"
    )]
    NewProvider {
        /// The agent.
        agent: String,
        /// The provider.
        provider: String,
    },
    /// A process without an agent could do nothing.
    #[error(
        "the files have no agent; write a table [agents.NAME], or restart the process without agents"
    )]
    NoAgent,
}

impl Config {
    /// Returns the configuration with agents, tools and skills of `read`, and with everything else as it is now.
    /// `providers` are the providers of the running process.
    pub fn reloaded(&self, read: Self, providers: &Providers) -> Result<Self, Refused> {
        if read.agents.is_empty() {
            return Err(Refused::NoAgent);
        }
        if let Some((agent, provider)) = unknown_provider(&read.agents, providers) {
            let (agent, provider) = (agent.to_owned(), provider.to_owned());
            return Err(Refused::NewProvider { agent, provider });
        }
        let mut next = self.clone();
        next.hash = read.hash;
        next.agents = read.agents;
        next.has_implied_agent = read.has_implied_agent;
        next.http_tools = read.http_tools;
        next.described_tools = read.described_tools;
        next.mcp = read.mcp;
        next.skills = read.skills;
        next.gateway.agents = read.gateway.agents;
        Ok(next)
    }

    /// Returns the names of the operator's tables that differ in `read`. Their changes need a restart.
    pub fn changed_operators(&self, read: &Self) -> Vec<String> {
        let names: BTreeSet<_> = self.operators.keys().chain(read.operators.keys()).collect();
        let differ = names
            .into_iter()
            .filter(|name| self.operators.get(*name) != read.operators.get(*name));
        differ.cloned().collect()
    }
}

/// Returns an agent with a provider that is not among `providers`.
fn unknown_provider<'a>(
    agents: &'a [AgentDefinition],
    providers: &Providers,
) -> Option<(&'a str, &'a str)> {
    let mut named = agents.iter().flat_map(|agent| {
        let fallback = agent.fallback.iter().flat_map(|chain| &chain.models);
        let fallback = fallback.map(|model| model.provider.as_str());
        let own = [agent.provider.as_str()].into_iter();
        own.chain(fallback).map(|it| (agent.name.as_str(), it))
    });
    named.find(|(_, provider)| !providers.contains_key(*provider) && *provider != DEMO_PROVIDER)
}

/// The differences between two configurations, by names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    agents: Named,
    tools: Named,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Named {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
}

impl Changes {
    /// Returns the differences of agents, of tools and of MCP servers.
    pub fn between(old: &Config, new: &Config) -> Self {
        Self {
            agents: Named::between(&agents(old), &agents(new)),
            tools: Named::between(&tools(old), &tools(new)),
        }
    }

    /// True without a difference: the files have other words for equal settings.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("agent", &self.agents), ("tool", &self.tools)];
        let words = parts.into_iter().flat_map(|(what, named)| {
            let lists = [
                ("added", &named.added),
                ("changed", &named.changed),
                ("removed", &named.removed),
            ];
            let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
            lists.map(move |(did, names)| {
                let plural = if names.len() == 1 { "" } else { "s" };
                format!("{did} {what}{plural} {}", names.join(", "))
            })
        });
        f.write_str(&words.collect::<Vec<_>>().join("; "))
    }
}

impl Named {
    fn between<T: PartialEq>(old: &[(String, T)], new: &[(String, T)]) -> Self {
        let find = |list: &'_ [(String, T)], name: &str| list.iter().position(|it| it.0 == name);
        let mut named = Self::default();
        for (name, value) in new {
            match find(old, name) {
                None => named.added.push(name.clone()),
                Some(at) if old[at].1 != *value => named.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        let gone = old.iter().filter(|(name, _)| find(new, name).is_none());
        named.removed = gone.map(|(name, _)| name.clone()).collect();
        named
    }
}

fn agents(config: &Config) -> Vec<(String, OfferedAgent)> {
    let offered = config.gateway.agents.iter();
    let agents = offered.map(|agent| (agent.definition.name.clone(), agent.clone()));
    agents.collect()
}

/// Returns a tool's name with a text that differs after a change. The text has no secrets.
fn tools(config: &Config) -> Vec<(String, String)> {
    let http = config.http_tools.iter();
    let http = http.map(|tool| (tool.spec.name.clone(), format!("{tool:?}")));
    let described = |tool: &DescribedTool| (tool.spec.name.clone(), format!("{tool:?}"));
    let described = config.described_tools.iter().map(described);
    let servers = config.mcp.iter();
    let servers = servers.map(|server| (format!("{}__*", server.name), format!("{server:?}")));
    let skills = config.skills.contents();
    let skills = skills.map(|(name, content)| (skills::tool_name(name), content.to_string()));
    http.chain(described).chain(servers).chain(skills).collect()
}
