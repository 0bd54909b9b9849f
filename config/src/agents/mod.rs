//! `[agents.NAME]`: agents, and the limits of their turns.
//!
//! - `entries`: the entries of an agent's `tools`
//! - `approval`: the calls that a person must approve
//! - `output`: the schema of an agent's answers
//! - `instructions`: the text that tells an agent its task, from the file or from a file of its own
//! - `parameters`: the parameters of an agent's LLM calls
//! - `fallback`: the models that answer when the agent's own model cannot
//! - `models`: the models that messages may choose
//! - `tool_choice`: the demand on the tool calls of a turn's first reply
//! - `hooks`: the tools that run around an agent's turns
//! - `delegates`: the agents that an agent may start
//! - `samples`: the messages with which a person may begin
//! - `responsible`: the owner of an agent, and the owner's address
//! - `defaults`: the defaults of an agent's table, and the agent of a start without any configuration

mod approval;
mod defaults;
mod delegates;
mod entries;
mod fallback;
mod hooks;
mod instructions;
mod models;
mod output;
mod parameters;
mod responsible;
mod samples;
mod tool_choice;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use everturn_models::{ProviderKind, Providers};
use everturn_proto::{
    Responsible, ids,
    limits::MAX_TOOL_CALLS,
    turn::{AgentDefinition, AgentTool},
    words::{DELEGATE_TOOL, OnCutReply, OnFullContext},
};
use everturn_tools::skills::{self, Skills};
use serde::Deserialize;
use toml::Spanned;

pub use self::defaults::DEFAULT_TOOL_TIMEOUT;
use self::fallback::FallbackTable;
use self::hooks::HooksTable;
use self::models::OwnModel;
use self::output::OutputTable;
use self::responsible::Line;
use self::samples::Sample;
#[cfg(test)]
pub(super) use self::{approval::KEYS as APPROVAL_KEYS, entries::KEYS as TOOL_KEYS};
use super::{
    budgets::{BudgetTable, MoneyLimits},
    checker::{Checker, milliseconds},
    forms::{DAY, HOUR, Number, OneOf, SECOND, Text, Time, Words, Written},
    models::{ContextWindow, Models},
    names::Names,
    providers,
    settings::DEMO_PROVIDER,
    tenants::{self, TenantList},
};

/// The seeds that every provider accepts. Gemini's maximum is the smallest.
type Seed = Number<0, 0x7fff_ffff>;
/// The tokens of thinking in one reply. No model writes a longer reply.
type ThinkingBudget = Number<0, 1_000_000>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentTable {
    provider: Spanned<String>,
    model: Written<Text>,
    #[serde(default)]
    models: Vec<Spanned<String>>,
    instructions: Option<Spanned<String>>,
    instructions_file: Option<Spanned<PathBuf>>,
    #[serde(default)]
    tools: Vec<Spanned<toml::Value>>,
    #[serde(default)]
    skills: Vec<Spanned<String>>,
    max_steps: Option<Written<Number<1, 100_000>>>,
    max_parallel_tools: Option<Written<Number<1, { MAX_TOOL_CALLS as u64 }>>>,
    llm_timeout: Option<Written<Time<SECOND, HOUR>>>,
    llm_total_timeout: Option<Written<Time<SECOND, DAY>>>,
    patience: Option<Written<Time<0, HOUR>>>,
    tool_timeout: Option<Written<Time<SECOND, DAY>>>,
    max_output_tokens: Option<u32>,
    context_window: Option<Written<ContextWindow>>,
    on_full_context: Option<Written<OneOf<OnFullContext>>>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    delegates: Vec<Spanned<String>>,
    max_depth: Option<Written<Number<1, 10>>>,
    max_sub_agents: Option<Written<Number<1, 1000>>>,
    turn_timeout: Option<Written<Time<SECOND, DAY>>>,
    on_cut_reply: Option<Written<OneOf<OnCutReply>>>,
    temperature: Option<Spanned<f64>>,
    top_p: Option<Spanned<f64>>,
    reasoning_effort: Option<Spanned<String>>,
    thinking_budget: Option<Written<ThinkingBudget>>,
    service_tier: Option<Spanned<String>>,
    parallel_tool_calls: Option<Spanned<bool>>,
    tool_choice: Option<Spanned<String>>,
    #[serde(default)]
    stop: Vec<Spanned<String>>,
    seed: Option<Written<Seed>>,
    extra_body: Option<Spanned<toml::Table>>,
    budget: Option<BudgetTable>,
    fallback: Option<FallbackTable>,
    output: Option<OutputTable>,
    hooks: Option<HooksTable>,
    tenants: Option<TenantList>,
    #[serde(default)]
    samples: Vec<Written<Sample>>,
    owner: Option<Written<Line>>,
    contact: Option<Written<Line>>,
}

impl Words for OnCutReply {
    const WORDS: &'static [(&'static str, Self)] =
        &[("end", Self::End), ("continue", Self::Continue)];
}

impl Words for OnFullContext {
    const WORDS: &'static [(&'static str, Self)] =
        &[("summarize", Self::Summarize), ("drop", Self::Drop)];
}

/// Returns the positions in the file at which agents limit the money of turns.
pub(super) fn money_limits(tables: &BTreeMap<Spanned<String>, AgentTable>) -> MoneyLimits {
    let budgets = tables
        .iter()
        .filter_map(|(name, table)| table.budget.as_ref()?.money(name.get_ref()));
    budgets.collect()
}

/// Returns the samples of each agent, by the agent's name.
pub(super) fn samples(
    tables: &BTreeMap<Spanned<String>, AgentTable>,
    check: &mut Checker<'_>,
) -> BTreeMap<String, Vec<String>> {
    let of_agent = |(name, table): (&Spanned<String>, &AgentTable)| {
        let name = name.get_ref().clone();
        (name, samples::checked(check, &table.samples))
    };
    tables.iter().map(of_agent).collect()
}

/// Returns the persons who are responsible for each agent, by the agent's name.
pub(super) fn responsible(
    tables: &BTreeMap<Spanned<String>, AgentTable>,
    check: &mut Checker<'_>,
) -> BTreeMap<String, Responsible> {
    let of_agent = |(name, table): (&Spanned<String>, &AgentTable)| {
        let responsible = responsible::checked(check, table.owner.as_ref(), table.contact.as_ref());
        (name.get_ref().clone(), responsible)
    };
    tables.iter().map(of_agent).collect()
}

/// Checks the agents of the file. For a worker without any agent, returns the built-in agent `default`.
pub(super) fn check(
    tables: BTreeMap<Spanned<String>, AgentTable>,
    check: &mut Checker<'_>,
    names: &mut Names,
    models: &Models,
    providers: &Providers,
) -> Vec<AgentDefinition> {
    names.agents = tables.keys().map(|name| name.get_ref().clone()).collect();
    let mut agents: Vec<_> = tables
        .into_iter()
        .map(|(name, table)| table.check(&name, check, names, models, providers))
        .collect();
    if agents.is_empty() && check.is_of_worker() {
        let agent = defaults::default_agent(check, names, models);
        // The demo model is for a start without configuration. A forgotten agent must not get the demo model.
        if !providers.is_empty() && agent.provider == DEMO_PROVIDER {
            check.missing(
                "[agents.default] is missing; add the agent for conversations without an agent's name",
            );
        }
        agents.push(agent);
    }
    agents
}

impl AgentTable {
    fn check(
        self,
        name: &Spanned<String>,
        check: &mut Checker<'_>,
        names: &Names,
        models: &Models,
        providers: &Providers,
    ) -> AgentDefinition {
        if let Err(reason) = ids::check(name.get_ref()) {
            check.wrong(name, format!("the name of an agent {reason}"));
        }
        let provider = self.provider.get_ref();
        if !providers.contains_key(provider) && provider != DEMO_PROVIDER {
            providers::unknown(check, &self.provider, providers, provider);
        }
        let model_name = check.value(&self.model).unwrap_or_default();
        // The demo model is compatible with OpenAI.
        let kind = providers.get(provider);
        let kind = kind.map_or(ProviderKind::OpenAi, |provider| provider.kind);
        let model = models.of(provider, &model_name);
        let limits = self.limits(check);
        let limits = self.parameters(check, kind, limits);
        let mut limits = AgentDefinition {
            prices: model.prices,
            assumed_output_tokens: model.assumed_output_tokens,
            context_window: limits.context_window.or(model.context_window),
            no_images: model.no_images,
            no_pdfs: model.no_pdfs,
            ..limits
        };
        let own = OwnModel {
            provider,
            model: &model_name,
            kind,
        };
        limits.models = models::checked(
            check,
            &self.models,
            (models, providers),
            &own,
            |check, kind| {
                self.parameters(check, kind, AgentDefinition::default());
            },
        );
        limits.fallback = self.fallback.as_ref().map(|table| {
            table.check(check, models, providers, &own, |check, kind| {
                self.parameters(check, kind, AgentDefinition::default());
            })
        });
        limits.budget = (self.budget.as_ref()).map(|budget| budget.check(check, &limits));
        limits.output = (self.output.as_ref()).and_then(|output| output.check(check));
        let written = (self.instructions.as_ref(), self.instructions_file.as_ref());
        let instructions = instructions::read(check, written).unwrap_or_default();
        let tools = self.tools(check, names);
        limits.tool_choice = tool_choice::checked(check, self.tool_choice.as_ref(), &tools);
        limits.hooks = (self.hooks.as_ref()).and_then(|hooks| hooks.check(check, names, &tools));
        AgentDefinition {
            name: name.get_ref().clone(),
            tools,
            model: Some(model_name),
            instructions,
            provider: self.provider.into_inner(),
            description: self.description,
            tenants: tenants::checked(check, self.tenants.as_ref()),
            ..limits
        }
    }

    /// Returns the tools of `tools`, then the skills' tools, then `delegate` unless `tools` has it. The order is part
    /// of the definition's hash.
    fn tools(&self, check: &mut Checker<'_>, names: &Names) -> Vec<AgentTool> {
        let timeout = check.value_or(&self.tool_timeout, DEFAULT_TOOL_TIMEOUT);
        let delegates =
            (!self.delegates.is_empty()).then(|| delegates::checked(check, &self.delegates, names));
        let mut tools: Vec<AgentTool> = Vec::new();
        for written in &self.tools {
            let tool = entries::tool(check, written, names, timeout, delegates.as_deref());
            let Some(tool) = tool else { continue };
            // Providers refuse a request that offers a tool twice.
            if tools.iter().any(|known| known.name == tool.name) {
                check.named_twice(written, "tool", &tool.name);
            } else {
                tools.push(tool);
            }
        }
        tools.extend(self.skill_tools(check, names, timeout));
        let is_listed = tools.iter().any(|tool| tool.name == DELEGATE_TOOL);
        if let Some(delegates) = delegates.filter(|agents| !agents.is_empty() && !is_listed) {
            tools.push(delegates::tool(delegates, None));
        }
        tools
    }

    /// Returns the tools through which the agent uses its skills.
    fn skill_tools(
        &self,
        check: &mut Checker<'_>,
        names: &Names,
        timeout: Duration,
    ) -> Vec<AgentTool> {
        let mut tools: Vec<AgentTool> = Vec::new();
        for written in &self.skills {
            let skill = written.get_ref();
            let name = skills::tool_name(skill);
            if tools.iter().any(|tool| tool.name == name) {
                check.named_twice(written, "skill", skill);
            } else if names.has_skill(skill) {
                tools.push(AgentTool {
                    name,
                    timeout_ms: milliseconds(timeout),
                    ..AgentTool::default()
                });
            } else {
                let known = names.skills.iter().flat_map(Skills::names);
                check.unknown(written, "skill", skill, known);
            }
        }
        tools
    }

    /// Returns the definition with the limits of the agent's turns.
    fn limits(&self, check: &mut Checker<'_>) -> AgentDefinition {
        // The default of a policy has no word in the agent's definition.
        let on_full_context = check.value(&self.on_full_context);
        let on_full_context = on_full_context.filter(|word| *word != OnFullContext::Summarize);
        let on_cut_reply = check.value(&self.on_cut_reply);
        let on_cut_reply = on_cut_reply.filter(|word| *word != OnCutReply::End);
        let parallel = check.value_or(&self.max_parallel_tools, defaults::MAX_PARALLEL_TOOLS);
        let llm_timeout = check.value_or(&self.llm_timeout, defaults::LLM_TIMEOUT);
        let llm_total_timeout = self.llm_total_timeout(check, llm_timeout);
        AgentDefinition {
            max_steps: check.value_or(&self.max_steps, defaults::MAX_STEPS),
            max_parallel_tools: Some(parallel),
            context_window: check.value(&self.context_window),
            on_full_context: on_full_context.map(String::from),
            max_depth: check.value_or(&self.max_depth, defaults::MAX_DEPTH),
            max_sub_agents: check.value_or(&self.max_sub_agents, defaults::MAX_SUB_AGENTS),
            // A 0 in the file means: the provider's own limit applies.
            max_output_tokens: self.max_output_tokens.filter(|tokens| *tokens > 0),
            llm_timeout_ms: milliseconds(llm_timeout),
            llm_total_timeout_ms: milliseconds(llm_total_timeout),
            patience_ms: milliseconds(check.value_or(&self.patience, defaults::PATIENCE)),
            turn_timeout_ms: check.value(&self.turn_timeout).map(milliseconds),
            on_cut_reply: on_cut_reply.map(String::from),
            ..AgentDefinition::default()
        }
    }

    /// Returns the time limit of a whole call. Without the key, the default never is shorter than the time for which the
    /// model may be silent.
    fn llm_total_timeout(&self, check: &mut Checker<'_>, llm_timeout: Duration) -> Duration {
        let default = defaults::LLM_TOTAL_TIMEOUT.max(llm_timeout);
        let total = check.value_or(&self.llm_total_timeout, default);
        if total < llm_timeout
            && let Some(written) = &self.llm_total_timeout
        {
            check.wrong(
                &written.at,
                "`llm_total_timeout` limits a whole call, and must be at least `llm_timeout`",
            );
        }
        total
    }
}
