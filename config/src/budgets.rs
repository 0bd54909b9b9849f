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

use super::{
    checker::{Checker, milliseconds},
    forms::{DAY, Form, Number, SECOND, Time, Written, within},
};

/// TOML's integers are signed, and so are the columns of the store.
type Tokens = Number<1, 1_000_000_000_000_000, u64>;
/// The largest amount, in USD. In nano-USD the amount fits a signed 64-bit number.
const MAX_USD: f64 = 1e9;
const MIN_USD: f64 = 1e-9;

/// The budget of an agent's turns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetTable {
    steps: Option<Written<Number<1, 1_000_000>>>,
    tokens: Option<Written<Tokens>>,
    usd: Option<Written<Usd>>,
    time: Option<Written<Time<SECOND, DAY>>>,
    conversation_tokens: Option<Written<Tokens>>,
    conversation_usd: Option<Written<Usd>>,
}

/// The daily budgets of each tenant, and of named tenants.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TenantBudgetTable {
    tokens: Option<Written<Tokens>>,
    usd: Option<Written<Usd>>,
    tenants: BTreeMap<String, DayTable>,
}

/// A tenant's budget for a day.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DayTable {
    tokens: Option<Written<Tokens>>,
    usd: Option<Written<Usd>>,
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
            if let Some(written) = written
                && let Ok(most) = &written.value
                && *most <= answer
            {
                check.wrong(
                    &written.at,
                    format!(
                        "no call would fit in a `{key}` of {most}: an answer may have {answer} tokens, which are reserved for it. \
                         Raise `{key}`, or lower `max_output_tokens` of the agent",
                    ),
                );
            }
        }
        Budget {
            steps: check.value(&self.steps),
            tokens: check.value(&self.tokens),
            nano_usd: check.value(&self.usd),
            time_ms: check.value(&self.time).map(milliseconds),
            conversation_tokens: check.value(&self.conversation_tokens),
            conversation_nano_usd: check.value(&self.conversation_usd),
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
    fn money(&self) -> Option<&Spanned<()>> {
        let own = self.tenants.values().filter_map(|table| table.usd.as_ref());
        self.usd.iter().chain(own).next().map(|usd| &usd.at)
    }
}

fn day(
    check: &mut Checker<'_>,
    tokens: Option<&Written<Tokens>>,
    usd: Option<&Written<Usd>>,
) -> DayBudget {
    DayBudget {
        tokens: check.value(tokens),
        nano_usd: check.value(usd),
    }
}

/// An amount in USD. The value is in nano-USD.
struct Usd;

impl Form for Usd {
    type Toml = f64;
    type Value = u64;

    fn read(usd: f64) -> Result<u64, String> {
        let usd = within(usd, MIN_USD..=MAX_USD)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let nano_usd = (usd * NANO_USD as f64).round() as u64;
        Ok(nano_usd)
    }
}

/// The positions in the file of limits of money: the agent with the limit, and the position in the file.
pub(super) type MoneyLimits = Vec<(String, Spanned<()>)>;

impl BudgetTable {
    /// Returns the agent and the position of its money limit, if the budget limits money.
    pub(super) fn money(&self, agent: &str) -> Option<(String, Spanned<()>)> {
        let written = self.usd.as_ref().or(self.conversation_usd.as_ref())?;
        Some((agent.to_owned(), written.at.clone()))
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
        report(check, written, agents.iter());
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
        let fallback = agent.fallback.iter().flat_map(|chain| &chain.models);
        let others = agent.models.iter().chain(fallback);
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
