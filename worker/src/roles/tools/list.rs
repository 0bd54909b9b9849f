//! `everturn tools list`: lists an agent's tools, as its model sees them.

use std::{collections::BTreeSet, process::ExitCode, time::Duration};

use everturn_config::Config;
use everturn_models::{ModelClient as _, Models, OfferedTool, unfit};
use everturn_proto::{turn::AgentDefinition, words::ToolKind};
use everturn_terminal::show;
use everturn_tools::{Asker, Effect, ToolRegistry, ToolSpec, delegate, names};
use futures::future::try_join_all;
use serde::Serialize;
use serde_json::Value;

use super::agent::{agent, refuse};
use crate::cli::ListTools;

/// The tools of an agent.
#[derive(Serialize)]
struct Listing<'a> {
    agent: &'a str,
    tools: Vec<Row>,
    unavailable: Vec<Unavailable<'a>>,
    /// The models that do not get every tool in a request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limited: Vec<Limited>,
}

/// A tool that a model is offered.
#[derive(Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    effect: Effect,
    timeout_ms: u32,
    /// When a person must approve a call: never, always, or by a rule on its arguments.
    approval: &'static str,
    /// The models that do not get the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOutRow>,
    description: String,
    parameters: Value,
}

/// A model that does not get a tool, because its provider would refuse every request with the tool.
#[derive(Serialize)]
struct LeftOutRow {
    model: String,
    reason: String,
}

/// A model with fewer tools in a request than the agent has. The model finds the others with `find_tools`.
#[derive(Serialize)]
struct Limited {
    model: String,
    max_tools: usize,
}

/// Tools that the agent lists, but no source offers now.
#[derive(Serialize)]
struct Unavailable<'a> {
    name: &'a str,
    reason: &'static str,
}

pub(super) async fn run(
    config: &Config,
    tools: &ToolRegistry,
    options: &ListTools,
) -> anyhow::Result<ExitCode> {
    let agent = match agent(config, &options.agent) {
        Ok(agent) => agent,
        Err(reason) => return Ok(refuse(&reason)),
    };
    let mut listing = listing(config, agent, tools, &options.tenant).await?;
    note_rules(&mut listing, agent, &Models::new(config.providers.clone())?);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&listing)?);
    } else {
        print(&listing);
    }
    let is_whole = listing.unavailable.is_empty() || !options.strict;
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Asks all sources in parallel.
async fn listing<'a>(
    config: &Config,
    agent: &'a AgentDefinition,
    tools: &ToolRegistry,
    tenant_id: &str,
) -> anyhow::Result<Listing<'a>> {
    let asker = Asker {
        tenant_id,
        owner_id: None,
        agent: &agent.name,
    };
    // Sub-agents are not in the registry of tools, because the workflow starts them.
    let (delegating, registered): (Vec<_>, Vec<_>) = agent
        .tools
        .iter()
        .partition(|tool| tool.kind() == ToolKind::Delegate);
    let asked = registered.into_iter().map(|listed| async move {
        tools
            .offered([&listed.name], asker)
            .await
            .map(|found| (listed, found))
    });
    let mut listing = Listing {
        agent: &agent.name,
        tools: Vec::new(),
        unavailable: Vec::new(),
        limited: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for (listed, found) in try_join_all(asked).await? {
        if found.is_empty() {
            let reason =
                "no tool has this name now; warnings on standard error may tell the reason";
            listing.unavailable.push(Unavailable {
                name: &listed.name,
                reason,
            });
        }
        let new = found
            .iter()
            .filter(|tool| seen.insert(tool.spec().name.clone()));
        listing
            .tools
            .extend(new.map(|tool| row(agent, tool.spec().clone(), tool.tool().origin().as_str())));
    }
    let agents = config
        .agents
        .iter()
        .map(|agent| (agent.name.clone(), agent.clone()))
        .collect();
    listing.tools.extend(
        delegating
            .into_iter()
            .filter_map(|tool| delegate::spec(tool, &agents, tenant_id))
            .map(|spec| row(agent, spec, "sub-agent")),
    );
    Ok(listing)
}

/// Returns the row of a tool. `kind` is shown for a worker's own tool.
fn row(agent: &AgentDefinition, spec: ToolSpec, kind: &'static str) -> Row {
    let listed = names::listed(&agent.tools, &spec.name)
        .cloned()
        .unwrap_or_default();
    Row {
        name: spec.name,
        kind: match listed.kind() {
            ToolKind::Client => "client",
            ToolKind::Remote => "remote",
            ToolKind::Worker | ToolKind::Delegate | ToolKind::Unknown(_) => kind,
        },
        effect: spec.effect,
        timeout_ms: listed.timeout_ms,
        approval: match listed.approval {
            None => "never",
            Some(policy) if policy.when.is_some() => "by rule",
            Some(_) => "always",
        },
        left_out: Vec::new(),
        description: spec.description,
        parameters: spec.parameters,
    }
}

/// Notes what the providers of the agent's models do not take.
fn note_rules(listing: &mut Listing<'_>, agent: &AgentDefinition, models: &Models) {
    for model in models_of(agent) {
        let (provider, name) = model.split_once('/').unwrap_or((&model, ""));
        let rules = models.tool_rules(provider, name);
        // A request also has room for `read_result`.
        if listing.tools.len() >= rules.max_tools {
            listing.limited.push(Limited {
                model: model.clone(),
                max_tools: rules.max_tools,
            });
        }
        for row in &mut listing.tools {
            let tool = OfferedTool {
                name: row.name.clone(),
                description: String::new(),
                parameters: row.parameters.clone(),
            };
            row.left_out
                .extend(unfit(&tool, rules).map(|reason| LeftOutRow {
                    model: model.clone(),
                    reason: reason.to_string(),
                }));
        }
    }
}

/// Returns the models that may answer for the agent, as `provider/model`.
fn models_of(agent: &AgentDefinition) -> BTreeSet<String> {
    let fallback = agent.fallback.iter().flat_map(|chain| &chain.models);
    let fallback = fallback.map(|model| format!("{}/{}", model.provider, model.model));
    agent.allowed_models().into_iter().chain(fallback).collect()
}

fn print(listing: &Listing<'_>) {
    let offered = listing.tools.iter().map(|row| row.name.len());
    let width = offered
        .chain(listing.unavailable.iter().map(|missing| missing.name.len()))
        .max()
        .unwrap_or_default();
    for Row {
        name,
        kind,
        effect,
        timeout_ms,
        approval,
        description,
        left_out,
        ..
    } in &listing.tools
    {
        let timeout =
            humantime::format_duration(Duration::from_millis((*timeout_ms).into())).to_string();
        println!(
            "{name:<width$}  {kind:<10}  {effect:<10}  {timeout:<6}  {approval:<7}  {}",
            show::shortened(description)
        );
        for LeftOutRow { model, reason } in left_out {
            println!("{:<width$}  left out for {model}: {reason}", "");
        }
    }
    for Unavailable { name, reason } in &listing.unavailable {
        println!("{name:<width$}  unavailable: {reason}");
    }
    for Limited { model, max_tools } in &listing.limited {
        println!(
            "{model} takes {max_tools} tools in a request: the model finds the rest of the {} tools with `find_tools`",
            listing.tools.len()
        );
    }
    if listing.tools.is_empty() && listing.unavailable.is_empty() {
        println!("agent `{}` has no tools", listing.agent);
    }
}
