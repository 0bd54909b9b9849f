//! Chains of models.

use everturn_proto::turn::{Fallback, FallbackModel, Prices};

use super::{PROVIDER, assert_errors, parse};

const AGENT: &str = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";
const CLAUDE: &str = "[providers.claude]\nkind = \"anthropic\"\n";

fn chain(lines: &str) -> String {
    format!("{PROVIDER}{AGENT}[agents.default.fallback]\n{lines}\n{CLAUDE}")
}

#[test]
fn an_agent_has_its_chain_with_what_is_known_of_each_model() {
    let models = "[models.\"main/org/large\"]\ninput = 1\noutput = 2\ncontext_window = 500_000\n\
                  images = false\npdfs = false\n";
    let text = chain("models = [\"main/org/large\", \"claude/sonnet\"]") + models;
    let config = parse(&text, &[("KEY", "secret")]).unwrap();
    let price = |usd: u32| usd * 1_000_000;
    let expected = Fallback {
        models: vec![
            FallbackModel {
                provider: "main".to_owned(),
                model: "org/large".to_owned(),
                context_window: Some(500_000),
                prices: Some(Prices {
                    input: price(1),
                    cached_input: price(1),
                    cache_write: price(1),
                    output: price(2),
                    reasoning: price(2),
                }),
                assumed_output_tokens: None,
                no_images: true,
                no_pdfs: true,
            },
            FallbackModel {
                provider: "claude".to_owned(),
                model: "sonnet".to_owned(),
                ..FallbackModel::default()
            },
        ],
        after: 2,
        at_once_on: [
            "llm_context_too_long",
            "llm_content_policy",
            "llm_quota_exceeded",
            "llm_unauthorized",
            "llm_not_found",
        ]
        .map(str::to_owned)
        .into(),
    };
    assert_eq!(config.agents[0].fallback, Some(expected));
    let text = chain("models = [\"main/n\"]\nafter = 5\nat_once_on = [\"llm_rate_limited\"]");
    let config = parse(&text, &[("KEY", "secret")]).unwrap();
    let fallback = config.agents[0].fallback.as_ref().unwrap();
    assert_eq!(
        (fallback.after, &fallback.at_once_on[..]),
        (5, &["llm_rate_limited".to_owned()][..])
    );
}

#[test]
fn what_is_wrong_with_a_chain_is_told() {
    let list = |models: &str| chain(&format!("models = [{models}]"));
    let with = |keys: &str| chain(&format!("models = [\"main/n\"]\n{keys}"));
    let six: Vec<_> = (0..6).map(|n| format!("\"main/m{n}\"")).collect();
    assert_errors(&[
        (list(""), "8:10: `models` of a fallback has 1 to 5 models"),
        (
            list(&six.join(", ")),
            "8:10: `models` of a fallback has 1 to 5 models",
        ),
        (list("\"main/m\""), "the agent has model `main/m` already"),
        (
            list("\"main/n\", \"main/n\""),
            "the agent has model `main/n` already",
        ),
        (list("\"gpt\""), "the name of a model is \"provider/model\""),
        (list("\"mian/gpt\""), "there is no provider `mian`"),
        (with("after = 6"), "9:9: `after` must be from 1 to 5, not 6"),
        (
            with("at_once_on = [\"step_limit\"]"),
            "there is no failure of models `step_limit`; there are: llm_timeout,",
        ),
        (
            format!(
                "{PROVIDER}{AGENT}seed = 7\n[agents.default.fallback]\nmodels = [\"claude/c\"]\n{CLAUDE}"
            ),
            "7:8: a provider of kind `anthropic` has no `seed`; remove the key",
        ),
        (
            format!(
                "{}[agents.default.budget]\nusd = 1\n[models.\"main/m\"]\ninput = 1\noutput = 1\n",
                with("")
            ),
            "money is limited here, and model `main/n` has no price",
        ),
    ]);
}
