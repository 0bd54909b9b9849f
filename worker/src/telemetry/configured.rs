//! The agents and tools of a configuration, as the labels of metrics have them.

use std::collections::{BTreeMap, BTreeSet};

use everturn_config::Config;
use everturn_proto::turn::AgentDefinition;
use everturn_telemetry::names::{Agent, Configured};
use everturn_tools::builtin::{find_tools, read_result};

/// Returns the names that labels may have with this configuration.
pub(super) fn configured(config: &Config) -> Configured {
    Configured {
        agents: agents(config),
        tools: tools(config),
        max_names: config.max_metric_names,
    }
}

fn agents(config: &Config) -> BTreeMap<String, Agent> {
    let offered = config.gateway.agents.iter();
    let agents = offered.map(|offered| {
        let responsible = offered.responsible.clone();
        let agent = Agent {
            owner: responsible.owner.unwrap_or_default(),
            contact: responsible.contact.unwrap_or_default(),
            models: models(&offered.definition),
        };
        (offered.definition.name.clone(), agent)
    });
    agents.collect()
}

/// Returns the models that may answer for the agent.
fn models(agent: &AgentDefinition) -> Vec<String> {
    let fallback = agent.fallback.iter().flat_map(|chain| &chain.models);
    let fallback = fallback.map(|model| model.model.clone());
    let chosen = agent.models.iter().map(|model| model.model.clone());
    let own = agent.model.iter().cloned();
    own.chain(chosen).chain(fallback).collect()
}

/// Returns the tools of the agents: the listed tools, the tools of hooks, and the tools that no agent lists.
fn tools(config: &Config) -> BTreeSet<String> {
    let of_agent = |agent: &AgentDefinition| {
        let hooks = agent.hooks.iter();
        let hooks = hooks.flat_map(|hooks| hooks.before_turn.iter().chain(&hooks.after_turn));
        let hooks = hooks.flat_map(|hook| &hook.tool);
        let tools = agent.tools.iter().chain(hooks);
        tools.map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    let tools = config.agents.iter().flat_map(of_agent);
    tools
        .chain([read_result::NAME, find_tools::NAME].map(str::to_owned))
        .collect()
}
