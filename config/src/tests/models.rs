//! The models that messages may choose.

use super::{PROVIDER, assert_errors, parse};

const CLAUDE: &str = "[providers.claude]\nkind = \"anthropic\"\n";

fn agent(lines: &str) -> String {
    format!("{PROVIDER}{CLAUDE}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n{lines}\n")
}

#[test]
fn an_agent_has_models_with_what_is_known_of_each() {
    let models = "[models.\"main/org/large\"]\ninput = 1\noutput = 2\ncontext_window = 500_000\n";
    let text = agent("models = [\"claude/sonnet\", \"main/m\", \"main/org/large\"]") + models;
    let config = parse(&text, &[("KEY", "secret")]).unwrap();
    let agent = &config.agents[0];
    assert_eq!(
        agent.allowed_models(),
        ["main/m", "claude/sonnet", "main/org/large"],
        "the own model is the first, and may be named"
    );
    let large = &agent.models[1];
    assert_eq!(large.context_window, Some(500_000));
    assert_eq!(large.prices.unwrap().output, 2_000_000);
}

#[test]
fn wrong_models_are_named() {
    let many: Vec<_> = (0..33)
        .map(|number| format!("\"main/m{number}\""))
        .collect();
    for (lines, expected) in [
        (
            "models = [\"m\"]",
            "the name of a model is \"provider/model\"",
        ),
        ("models = [\"other/m\"]", "`other`"),
        (
            "models = [\"main/n\", \"main/n\"]",
            "model `main/n` is named twice",
        ),
        ("seed = 1\nmodels = [\"claude/s\"]", "has no `seed`"),
        (
            &format!("models = [{}]", many.join(", ")),
            "`models` has at most 32 models",
        ),
        (
            "models = [\"claude/s\"]\nbudget = { usd = 1 }\n[models.\"main/m\"]\ninput = 1\noutput = 1",
            "model `claude/s` has no price",
        ),
    ] {
        assert_errors(&[(agent(lines), expected)]);
    }
}
