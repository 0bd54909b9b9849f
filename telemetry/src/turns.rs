//! Metrics of workers: turns, their calls of models and tools, and the time of their saves.

use std::time::Duration;

use crate::{
    metric::{LONG, Metric, SHORT},
    names,
};

const TURNS_BEGUN: Metric = Metric::counter(
    "everturn_turns_begun_total",
    "Turns that the worker has begun, by agent; sub-agents are not counted.",
    &["agent"],
);
const AGENTS_ENDED: Metric = Metric::counter(
    "everturn_agents_ended_total",
    "Agent executions that the worker has ended, by agent, by the status and the error's code.",
    &["agent", "agent_type", "status", "code"],
);
const TURN_SECONDS: Metric = Metric::histogram(
    "everturn_turn_seconds",
    "The duration of turns that the worker has begun and ended.",
    &["status"],
    LONG,
);
const STEPS: Metric = Metric::counter(
    "everturn_steps_total",
    "Steps: stored replies of models.",
    &[],
);
const CHECKPOINT_HITS: Metric = Metric::counter(
    "everturn_checkpoint_hits_total",
    "Model calls that were not made, and not paid again, because the reply was stored already.",
    &[],
);
const MODEL_CALLS: Metric = Metric::counter(
    "everturn_model_calls_total",
    "Calls of models, by the result: `ok`, `dropped`, or the code of the error.",
    &["agent", "provider", "model", "result"],
);
const MODEL_CALLS_WAITING: Metric = Metric::gauge(
    "everturn_model_calls_waiting",
    "Calls of models waiting because of the provider's limits in the configuration.",
    &["provider"],
);
const CIRCUITS_OPEN: Metric = Metric::gauge(
    "everturn_model_circuits_open",
    "1 for a model that has failed and not answered since: agents with other models avoid the model for a while.",
    &["provider", "model"],
);
const MODEL_SECONDS: Metric = Metric::histogram(
    "everturn_model_call_seconds",
    "How long calls of models took.",
    &["provider", "model"],
    LONG,
);
const FIRST_DELTA_SECONDS: Metric = Metric::histogram(
    "everturn_model_first_delta_seconds",
    "The time from a call of a model to the first piece of text or reasoning.",
    &["provider", "model"],
    LONG,
);
const MODEL_TOKENS: Metric = Metric::counter(
    "everturn_model_tokens_total",
    "Tokens of successful calls of models, as counted by the provider, or estimated for a provider without a count.",
    &["agent", "provider", "model", "direction"],
);
const CUT_TOKENS: Metric = Metric::counter(
    "everturn_model_cut_tokens_total",
    "The most tokens of calls of models without a reply that the provider probably bills: cut, cancelled or timed out.",
    &["agent", "provider", "model"],
);
const COST: Metric = Metric::amount(
    "everturn_cost_usd_total",
    "Money for successful calls of models in USD, at the prices of the configuration.",
    &["agent", "model"],
);
const CUT_COST: Metric = Metric::amount(
    "everturn_cut_cost_usd_total",
    "The most money for calls of models without a reply that the provider probably bills, in USD.",
    &["agent", "model"],
);
const TOOLS_ENDED: Metric = Metric::counter(
    "everturn_tools_ended_total",
    "Ended tool executions, by agent, by tool, by the `effect` (whether the tool may run again) and the `status`.",
    &["agent", "tool", "effect", "status"],
);
const TOOL_BUSY: Metric = Metric::amount(
    "everturn_tool_busy_seconds_total",
    "The time of ended tool executions, by agent and by tool.",
    &["agent", "tool"],
);
const TOOL_SECONDS: Metric = Metric::histogram(
    "everturn_tool_seconds",
    "How long tool executions took.",
    &["effect"],
    LONG,
);
const SAVE_SECONDS: Metric = Metric::histogram(
    "everturn_save_seconds",
    "How long the store took to save a batch of events, with the wait for a connection.",
    &["batch"],
    SHORT,
);
const STORE_ERRORS: Metric = Metric::counter(
    "everturn_store_errors_total",
    "Failed calls of turns to the store, by whether the store was away (`unavailable`).",
    &["kind"],
);
const PAYLOADS_REFUSED: Metric = Metric::counter(
    "everturn_payloads_refused_total",
    "Signals and updates that turns have refused because of their payloads, by the reason.",
    &["reason"],
);

pub(crate) const ALL: &[&Metric] = &[
    &TURNS_BEGUN,
    &AGENTS_ENDED,
    &TURN_SECONDS,
    &STEPS,
    &CHECKPOINT_HITS,
    &MODEL_CALLS,
    &MODEL_CALLS_WAITING,
    &CIRCUITS_OPEN,
    &MODEL_SECONDS,
    &FIRST_DELTA_SECONDS,
    &MODEL_TOKENS,
    &CUT_TOKENS,
    &COST,
    &CUT_COST,
    &TOOLS_ENDED,
    &TOOL_BUSY,
    &TOOL_SECONDS,
    &SAVE_SECONDS,
    &STORE_ERRORS,
    &PAYLOADS_REFUSED,
];

/// Begins the series of each agent's counters at 0. A series that begins with its first increase is no increase for
/// Prometheus.
pub fn begin_series() {
    for (agent, models) in names::models() {
        TURNS_BEGUN.add(0, &[&agent]);
        for model in models {
            COST.add_amount(0.0, &[&agent, &model]);
            CUT_COST.add_amount(0.0, &[&agent, &model]);
        }
    }
}

/// Records the begin of a turn of the agent.
pub fn begun(agent: &str) {
    TURNS_BEGUN.add(1, &[&names::agent(agent)]);
}

/// The kind of an agent execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// The agent of a turn.
    OfTurn,
    /// A sub-agent.
    Sub,
}

/// Records the end of an execution of the agent. `code` is the code of the error, or empty. `took` is known for turns that
/// began in the process.
pub fn ended(name: &str, agent: Agent, status: &str, code: &str, took: Option<Duration>) {
    let of = match agent {
        Agent::OfTurn => "turn",
        Agent::Sub => "sub_agent",
    };
    AGENTS_ENDED.add(1, &[&names::agent(name), of, status, code]);
    if let Some(took) = took {
        TURN_SECONDS.took(took, &[status]);
    }
}

/// Records a stored reply of a step.
pub fn step_stored() {
    STEPS.add(1, &[]);
}

/// Records a step without a call, because the store had the reply already.
pub fn checkpoint_hit() {
    CHECKPOINT_HITS.add(1, &[]);
}

/// A model by the names in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The provider.
    pub provider: String,
    /// The provider's name of the model.
    pub name: String,
}

impl Model {
    /// Records the end of a call for the agent. `result` is `ok`, `dropped`, or the code of an error.
    pub fn called(&self, agent: &str, result: &str, took: Duration) {
        let agent = names::agent(agent);
        MODEL_CALLS.add(1, &[&agent, &self.provider, &self.name, result]);
        MODEL_SECONDS.took(took, &[&self.provider, &self.name]);
    }

    /// Records the time until the first piece of a reply.
    pub fn first_delta(&self, after: Duration) {
        FIRST_DELTA_SECONDS.took(after, &[&self.provider, &self.name]);
    }

    /// Records the tokens of a call for the agent.
    pub fn tokens(&self, agent: &str, input: u32, output: u32) {
        let agent = names::agent(agent);
        for (direction, tokens) in [("input", input), ("output", output)] {
            let labels = [&agent, &self.provider, &self.name, direction];
            MODEL_TOKENS.add(u64::from(tokens), &labels);
        }
    }

    /// Records the most tokens of a call without a reply for the agent.
    pub fn cut(&self, agent: &str, tokens: u64) {
        let agent = names::agent(agent);
        CUT_TOKENS.add(tokens, &[&agent, &self.provider, &self.name]);
    }

    /// Records the cost of a call for the agent, in nano-USD.
    pub fn cost(&self, agent: &str, nano_usd: u64) {
        COST.add_amount(usd(nano_usd), &[&names::agent(agent), &self.name]);
    }

    /// Records the most money for a call without a reply for the agent, in nano-USD.
    pub fn cut_cost(&self, agent: &str, nano_usd: u64) {
        CUT_COST.add_amount(usd(nano_usd), &[&names::agent(agent), &self.name]);
    }
}

/// Returns nano-USD in USD. A call costs far less than 2^53 nano-USD, which are 9 million USD.
#[allow(clippy::cast_precision_loss)]
fn usd(nano_usd: u64) -> f64 {
    nano_usd as f64 / 1e9
}

/// Records the number of calls that wait for a provider's limits.
pub fn calls_waiting(provider: &str, count: usize) {
    MODEL_CALLS_WAITING.set(count, &[provider]);
}

/// Records the circuit of a model. While the circuit is open, workers do not call the model.
pub fn circuit_open(provider: &str, model: &str, is_open: bool) {
    CIRCUITS_OPEN.set(usize::from(is_open), &[provider, model]);
}

/// Records the stored end of an execution of the tool for the agent.
pub fn tool_ended(agent: &str, tool: &str, effect: &str, status: &str, took: Duration) {
    let (agent, tool) = (names::agent(agent), names::tool(tool));
    TOOLS_ENDED.add(1, &[&agent, &tool, effect, status]);
    TOOL_BUSY.add_amount(took.as_secs_f64(), &[&agent, &tool]);
    TOOL_SECONDS.took(took, &[effect]);
}

/// Records a saved batch.
pub fn saved(batch: &'static str, took: Duration) {
    SAVE_SECONDS.took(took, &[batch]);
}

/// Records a signal or an update whose payload a turn has refused.
pub fn payload_refused(reason: &str) {
    PAYLOADS_REFUSED.add(1, &[reason]);
}

/// Records a failed call to the store.
pub fn store_failed(is_away: bool) {
    let kind = if is_away { "unavailable" } else { "other" };
    STORE_ERRORS.add(1, &[kind]);
}
