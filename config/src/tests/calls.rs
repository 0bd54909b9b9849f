//! The settings of an agent's LLM calls that only some kinds of providers have.

use super::{assert_errors, parse};

/// A file with an agent of a provider of this kind.
fn file(kind: &str, agent: &str) -> String {
    format!(
        "[providers.main]\nkind = \"{kind}\"\nbase_url = \"http://localhost:1/v1/\"\n\
         [agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"calculate\"]\n{agent}\n"
    )
}

#[test]
fn an_agent_sets_its_calls() {
    let agent = |kind: &str, text: &str| {
        let config = parse(&file(kind, text), &[]).unwrap();
        config.agents[0].clone()
    };
    let text = "service_tier = \"flex\"\nparallel_tool_calls = false\ntool_choice = \"calculate\"";
    for kind in ["openai", "openai_responses", "azure"] {
        let agent = agent(kind, text);
        assert_eq!(
            (
                agent.service_tier.as_deref(),
                agent.parallel_tool_calls,
                agent.tool_choice.as_deref()
            ),
            (Some("flex"), Some(false), Some("calculate"))
        );
    }
    let anthropic = agent(
        "anthropic",
        "service_tier = \"standard_only\"\nthinking_budget = 1024",
    );
    assert_eq!(anthropic.thinking_budget, Some(1024));
    let gemini = agent("gemini", "thinking_budget = 0\ntool_choice = \"required\"");
    assert_eq!(gemini.thinking_budget, Some(0));
    let of_server = "tool_choice = \"git__commit\"\n[mcp.git]\ncommand = [\"git-mcp\"]\nprocess.unconfined = true";
    let text = file("openai", of_server).replace("\"calculate\"]", "\"git__*\"]");
    let config = parse(&text, &[]).unwrap();
    assert_eq!(config.agents[0].tool_choice.as_deref(), Some("git__commit"));
}

#[test]
fn what_a_kind_does_not_have_is_refused() {
    assert_errors(&[
        (
            file("gemini", "service_tier = \"flex\""),
            "a provider of kind `gemini` has no `service_tier`; remove the key",
        ),
        (
            file("anthropic", "service_tier = \"flex\""),
            "`service_tier` of a provider of kind `anthropic` is one of auto, standard_only, not \"flex\"",
        ),
        (
            file("openai", "service_tier = \"\""),
            "`service_tier` has 1 to 64 characters",
        ),
        (
            file("gemini", "parallel_tool_calls = true"),
            "a provider of kind `gemini` has no `parallel_tool_calls`",
        ),
        (
            file("openai", "thinking_budget = 2000"),
            "a provider of kind `openai` has no `thinking_budget`",
        ),
        (
            file("openai_responses", "thinking_budget = 2000"),
            "a provider of kind `openai_responses` has no `thinking_budget`",
        ),
        (
            file("anthropic", "thinking_budget = 1000"),
            "`thinking_budget` of a provider of kind `anthropic` is at least 1024",
        ),
        (
            file(
                "anthropic",
                "thinking_budget = 2000\nmax_output_tokens = 2000",
            ),
            "`thinking_budget` is a part of `max_output_tokens`, and must be less",
        ),
        (
            file("gemini", "thinking_budget = 0\nreasoning_effort = \"low\""),
            "`thinking_budget` and `reasoning_effort` both say how much the model thinks",
        ),
        (
            file("openai", "tool_choice = \"search\""),
            "`tool_choice` is auto, required, none, or the name of a tool of the agent (calculate), not \"search\"",
        ),
        (
            file("openai", "tool_choice = \"required\"").replace("tools = [\"calculate\"]\n", ""),
            "`tool_choice` is for agents with tools",
        ),
    ]);
}
