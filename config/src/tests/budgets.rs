//! Prices of models and budgets.

use everturn_proto::turn::{Budget, Prices};
use everturn_store::DayBudget;

use super::{PROVIDER, assert_errors, parse};

const AGENT: &str = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";
const PRICES: &str = "[models.\"main/m\"]\ninput = 0.25\noutput = 2\n";

fn read(text: &str) -> super::Config {
    parse(&format!("{PROVIDER}{text}"), &[("KEY", "secret")]).unwrap()
}

#[test]
fn an_agent_has_its_budget_and_the_prices_of_its_model() {
    let text = format!(
        "{AGENT}[agents.default.budget]\nsteps = 5\ntokens = 10_000\nusd = 0.05\ntime = \"10s\"\nconversation_usd = 2\n\
         {PRICES}cached_input = 0.025\nassumed_output_tokens = 100\n"
    );
    let agent = &read(&text).agents[0];
    let budget = Budget {
        steps: Some(5),
        tokens: Some(10_000),
        nano_usd: Some(50_000_000),
        time_ms: Some(10_000),
        conversation_tokens: None,
        conversation_nano_usd: Some(2_000_000_000),
    };
    assert_eq!(agent.budget, Some(budget));
    let prices = Prices {
        input: 250_000,
        cached_input: 25_000,
        cache_write: 250_000,
        output: 2_000_000,
        reasoning: 2_000_000,
    };
    assert_eq!(agent.prices, Some(prices));
    assert_eq!(agent.assumed_output_tokens, Some(100));
    let plain = &read(AGENT).agents[0];
    assert_eq!((plain.budget, plain.prices), (None, None));
}

#[test]
fn tenants_have_budgets_of_the_day() {
    let text = format!(
        "{AGENT}[tenant_budget]\ntokens = 7\n[tenant_budget.tenants.acme]\nusd = 1\n{PRICES}"
    );
    let budgets = read(&text).tenant_budgets;
    let own = DayBudget {
        tokens: None,
        nano_usd: Some(1_000_000_000),
    };
    assert_eq!(budgets.of("acme"), own);
    assert_eq!(budgets.of("other").tokens, Some(7));
    assert_eq!(read(AGENT).tenant_budgets.of("acme"), DayBudget::default());
}

#[test]
fn a_model_without_a_price_is_refused_where_money_is_limited() {
    let usd = "[agents.default.budget]\nusd = 0.05\n";
    let helper = "[agents.helper]\nprovider = \"main\"\nmodel = \"other\"\n";
    let delegating = format!("{AGENT}delegates = [\"helper\"]\n");
    assert_errors(&[
        (
            format!("{PROVIDER}{AGENT}{usd}"),
            "8:7: money is limited here, and model `main/m` has no price; add [models.\"main/m\"]",
        ),
        (
            format!("{PROVIDER}{delegating}{usd}{helper}{PRICES}"),
            "9:7: money is limited here, and model `main/other` has no price",
        ),
        (
            format!("{PROVIDER}{AGENT}[tenant_budget]\nusd = 1\n"),
            "8:7: money is limited here, and model `main/m` has no price",
        ),
    ]);
    // Nobody delegates to this one.
    read(&format!("{AGENT}{usd}{helper}{PRICES}"));
}

#[test]
fn what_is_wrong_with_a_budget_is_told() {
    let budget = |line: &str| format!("{PROVIDER}{AGENT}[agents.default.budget]\n{line}\n{PRICES}");
    assert_errors(&[
        (
            budget("tokens = 4096"),
            "8:10: no call would fit in a `tokens` of 4096: an answer may have 4096 tokens",
        ),
        (budget("steps = 0"), "8:9: `steps` must be from 1"),
        (budget("usd = -1"), "8:7: `usd` must be from 0.000000001"),
        (budget("usd = nan"), "8:7: `usd` must be from 0.000000001"),
        (
            budget("time = \"2days\""),
            "8:8: `time` must be from 1s to 1day",
        ),
        (budget("dollars = 1"), "unknown field `dollars`"),
        (
            format!("{PROVIDER}{AGENT}[models.\"main/m\"]\ninput = 1\n"),
            "7:9: a model has a price when it has both `input` and `output`",
        ),
        (
            format!("{PROVIDER}{AGENT}[models.m]\ninput = 1\noutput = 1\n"),
            "7:9: the name of a model is \"provider/model\"",
        ),
        (
            format!("{PROVIDER}{AGENT}[models.\"main/m\"]\ninput = 5000\noutput = 1\n"),
            "8:9: `input` must be from 0 to 4000",
        ),
    ]);
}
