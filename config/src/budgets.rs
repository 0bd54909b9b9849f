//! `[agents.NAME.budget]` and `[tenant_budget]`: the tokens and the money that turns, conversations and tenants may
//! spend on models.

use std::collections::{BTreeMap, BTreeSet};

use everturn_activities::TenantBudgets;
use everturn_models::signer;
use everturn_proto::{
    money::{ASSUMED_OUTPUT_TOKENS, NANO_USD},
    turn::{AgentDefinition, Budget},
    words::ToolKind,
};
use everturn_store::DayBudget;
use serde::Deserialize;
use toml::Spanned;

use super::checker::{Checker, HOUR, SECOND, milliseconds};

const MAX_STEPS: u32 = 1_000_000;
/// TOML's integers are signed, and so are the columns of the store.
const MAX_TOKENS: u64 = 1_000_000_000_000_000;
/// The largest amount, in USD. In nano-USD the amount fits a signed 64-bit number.
const MAX_USD: f64 = 1e9;
const MIN_USD: f64 = 1e-9;

/// The budget of an agent's turns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetTable {
    steps: Option<Spanned<u32>>,
    tokens: Option<Spanned<u64>>,
    usd: Option<Spanned<f64>>,
    time: Option<Spanned<String>>,
    conversation_tokens: Option<Spanned<u64>>,
    conversation_usd: Option<Spanned<f64>>,
}

/// The daily budgets of each tenant, and of named tenants.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TenantBudgetTable {
    tokens: Option<Spanned<u64>>,
    usd: Option<Spanned<f64>>,
    tenants: BTreeMap<String, DayTable>,
}

/// A tenant's budget for a day.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DayTable {
    tokens: Option<Spanned<u64>>,
    usd: Option<Spanned<f64>>,
}

impl BudgetTable {
    /// Returns the budget. `agent` is the rest of the agent's definition: an answer of its maximum length must fit in
    /// the budget.
    pub(super) fn check(&self, check: &mut Checker<'_>, agent: &AgentDefinition) -> Budget {
        let assumed = agent.assumed_output_tokens;
        let answer = agent.max_output_tokens.or(assumed);
        let answer = u64::from(answer.unwrap_or(ASSUMED_OUTPUT_TOKENS));
        for (key, written) in [
            ("tokens", &self.tokens),
            ("conversation_tokens", &self.conversation_tokens),
        ] {
            if let Some(written) = written.as_ref().filter(|most| *most.get_ref() <= answer) {
                check.wrong(
                    written,
                    format!(
                        "no call would fit in a `{key}` of {}: an answer may have {answer} tokens, which are reserved for it. \
                         Raise `{key}`, or lower `max_output_tokens` of the agent",
                        written.get_ref()
                    ),
                );
            }
        }
        let steps = self.steps.as_ref();
        Budget {
            steps: steps.map(|written| check.number("steps", written, 1, 1..=MAX_STEPS)),
            tokens: tokens(check, "tokens", self.tokens.as_ref()),
            nano_usd: nano_usd(check, "usd", self.usd.as_ref()),
            time_ms: check
                .optional_duration("time", &self.time, SECOND..=24 * HOUR)
                .map(milliseconds),
            conversation_tokens: tokens(
                check,
                "conversation_tokens",
                self.conversation_tokens.as_ref(),
            ),
            conversation_nano_usd: nano_usd(
                check,
                "conversation_usd",
                self.conversation_usd.as_ref(),
            ),
        }
    }
}

impl TenantBudgetTable {
    /// Returns the tenants' budgets.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> TenantBudgets {
        let each = day(check, self.tokens.as_ref(), self.usd.as_ref());
        let own = self.tenants.iter().map(|(tenant_id, table)| {
            let own = day(check, table.tokens.as_ref(), table.usd.as_ref());
            (tenant_id.clone(), own)
        });
        TenantBudgets {
            own: own.collect(),
            each,
        }
    }

    /// Returns the position of a money budget in the file, if the table has one.
    fn money(&self) -> Option<&Spanned<f64>> {
        let own = self.tenants.values().filter_map(|table| table.usd.as_ref());
        self.usd.iter().chain(own).next()
    }
}

fn day(
    check: &mut Checker<'_>,
    most_tokens: Option<&Spanned<u64>>,
    usd: Option<&Spanned<f64>>,
) -> DayBudget {
    DayBudget {
        tokens: tokens(check, "tokens", most_tokens),
        nano_usd: nano_usd(check, "usd", usd),
    }
}

fn tokens(check: &mut Checker<'_>, key: &str, value: Option<&Spanned<u64>>) -> Option<u64> {
    Some(check.number(key, value?, 1, 1..=MAX_TOKENS))
}

/// Returns an amount of money in nano-USD, if the file has an amount in USD.
fn nano_usd(check: &mut Checker<'_>, key: &str, value: Option<&Spanned<f64>>) -> Option<u64> {
    let usd = check.number(key, value?, MIN_USD, MIN_USD..=MAX_USD);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    let nano_usd = (usd * NANO_USD as f64).round() as u64;
    Some(nano_usd)
}

/// The positions in the file of limits of money: the agent with the limit, and the position in the file.
pub(super) type MoneyLimits = Vec<(String, Spanned<()>)>;

impl BudgetTable {
    /// Returns the agent and the position of its money limit, if the budget limits money.
    pub(super) fn money(&self, agent: &str) -> Option<(String, Spanned<()>)> {
        let written = self.usd.as_ref().or(self.conversation_usd.as_ref())?;
        Some((agent.to_owned(), Spanned::new(written.span(), ())))
    }
}

/// Refuses models without a price where money is limited. That concerns agents with a money budget and all agents that
/// they may delegate to; with a tenant's money budget, it concerns every agent.
pub(super) fn check_prices(
    check: &mut Checker<'_>,
    agents: &[AgentDefinition],
    limits: &MoneyLimits,
    tenants: &TenantBudgetTable,
) {
    for (agent, span) in limits {
        let reached = reached_from(agents, agent);
        let reached = agents
            .iter()
            .filter(|agent| reached.contains(agent.name.as_str()));
        report(check, span, reached);
    }
    if let Some(written) = tenants.money() {
        report(check, &Spanned::new(written.span(), ()), agents.iter());
    }
}

fn report<'a>(
    check: &mut Checker<'_>,
    span: &Spanned<()>,
    agents: impl Iterator<Item = &'a AgentDefinition>,
) {
    let mut without = BTreeSet::new();
    for agent in agents {
        if agent.prices.is_none() {
            let model = agent.model.as_deref().unwrap_or_default();
            without.insert(signer(&agent.provider, model));
        }
        let others = agent.fallback.iter().flat_map(|chain| &chain.models);
        let others = others.filter(|other| other.prices.is_none());
        without.extend(others.map(|other| signer(&other.provider, &other.model)));
    }
    for model in without {
        check.wrong(
            span,
            format!(
                "money is limited here, and model `{model}` has no price; add [models.\"{model}\"] with `input` and \
                 `output`, in USD per million tokens"
            ),
        );
    }
}

/// Returns `first` and the agents that `first` may delegate to, directly or through further agents.
fn reached_from<'a>(agents: &'a [AgentDefinition], first: &'a str) -> BTreeSet<&'a str> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![first]);
    while let Some(name) = left.pop() {
        if !reached.insert(name) {
            continue;
        }
        let agent = agents.iter().find(|agent| agent.name == name);
        let tools = agent.iter().flat_map(|agent| &agent.tools);
        let delegates = tools.filter(|tool| tool.kind() == ToolKind::Delegate);
        left.extend(
            delegates
                .flat_map(|tool| &tool.delegates)
                .map(String::as_str),
        );
    }
    reached
}
