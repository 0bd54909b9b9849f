//! The defaults of an agent's table, and the agent `default` of a file without an agent of that name.

use std::time::Duration;

use everturn_proto::{
    turn::{AgentDefinition, AgentTool},
    words::DEFAULT_AGENT,
};

use crate::{
    checker::{Checker, milliseconds},
    models::Models,
    names::Names,
    providers::USUAL_PROVIDERS,
    settings::DEMO_PROVIDER,
};

/// The time-out of a tool without a configured time-out.
pub const DEFAULT_TOOL_TIMEOUT: Duration = Duration::from_mins(5);
pub(super) const LLM_TIMEOUT: Duration = Duration::from_mins(1);
/// Reasoning models write for many minutes.
pub(super) const LLM_TOTAL_TIMEOUT: Duration = Duration::from_mins(30);
/// Longer than most rate limits and overloads of providers last.
pub(super) const PATIENCE: Duration = Duration::from_mins(10);
pub(super) const MAX_STEPS: u32 = 20;
/// The limit exists because a worker has 200 slots for all its turns, and because the services behind tools have
/// limits, too.
pub(super) const MAX_PARALLEL_TOOLS: u32 = 16;
/// Three levels of sub-agents. Deeper trees are mostly loops.
pub(super) const MAX_DEPTH: u32 = 3;
/// Each sub-agent makes LLM calls of its own. 16 sub-agents are enough for wide research, and limit the cost of an
/// agent that starts too many.
pub(super) const MAX_SUB_AGENTS: u32 = 16;

const INSTRUCTIONS: &str = "You are a helpful assistant. Use tools rather than guessing.";
const TOOLS: [&str; 3] = ["calculate", "current_time", "work_plan"];

/// Returns the agent `default`. Its provider is the first usual provider whose key is in the environment. Without any
/// key, the agent uses the demo model.
pub(super) fn default_agent(
    check: &Checker<'_>,
    names: &Names,
    models: &Models,
) -> AgentDefinition {
    let with_key = USUAL_PROVIDERS
        .iter()
        .find(|usual| check.variable(usual.key_variable).is_some());
    let (provider, model) = match with_key {
        Some(usual) => {
            let model = check.variable("EVERTURN_MODEL");
            (usual.name, model.unwrap_or_else(|| usual.model.to_owned()))
        }
        None => (DEMO_PROVIDER, DEMO_PROVIDER.to_owned()),
    };
    let tool = |name: &str| AgentTool {
        name: name.to_owned(),
        timeout_ms: milliseconds(DEFAULT_TOOL_TIMEOUT),
        ..AgentTool::default()
    };
    let known = models.of(provider, &model);
    AgentDefinition {
        prices: known.prices,
        assumed_output_tokens: known.assumed_output_tokens,
        name: DEFAULT_AGENT.to_owned(),
        provider: provider.to_owned(),
        model: Some(model),
        instructions: INSTRUCTIONS.to_owned(),
        tools: TOOLS
            .into_iter()
            .filter(|name| names.runner(name).is_some())
            .map(tool)
            .collect(),
        max_steps: MAX_STEPS,
        max_parallel_tools: Some(MAX_PARALLEL_TOOLS),
        llm_timeout_ms: milliseconds(LLM_TIMEOUT),
        llm_total_timeout_ms: milliseconds(LLM_TOTAL_TIMEOUT),
        patience_ms: milliseconds(PATIENCE),
        ..AgentDefinition::default()
    }
}
