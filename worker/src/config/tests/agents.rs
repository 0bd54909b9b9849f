//! `[agents.NAME]`: what agents take, and what their errors say.

use super::{PROVIDER, assert_errors, parse};

#[test]
fn an_agent_takes_what_is_written() {
    let text = format!(
        "{PROVIDER}base_url = \"http://localhost:1/v1\"\n[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n\
         tools = [\"calculate\", {{ name = \"work_plan\", timeout = \"30s\" }}]\nllm_timeout = \"2m\"\nmax_steps = 3\n"
    );
    let config = parse(&text, &[("KEY", "secret")]).unwrap();
    let agent = &config.agents[0];
    assert_eq!(
        (
            agent.llm_timeout_ms,
            agent.max_steps,
            agent.tools[1].timeout_ms
        ),
        (120_000, 3, 30_000)
    );
    assert_eq!(
        config.providers["main"].base_url.as_deref(),
        Some("http://localhost:1/v1/")
    );
    assert!(
        !format!("{config:?}").contains("secret"),
        "keys stay out of logs"
    );
}

#[test]
fn an_output_has_no_limit_unless_one_is_written() {
    let limit = |line: &str| {
        let text =
            format!("{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n{line}");
        let config = parse(&text, &[("KEY", "secret")]).unwrap();
        config.agents[0].max_output_tokens
    };
    assert_eq!(limit(""), None);
    assert_eq!(limit("max_output_tokens = 0\n"), None);
    assert_eq!(limit("max_output_tokens = 77\n"), Some(77));
}

#[test]
fn an_agent_with_delegates_has_the_tool_with_its_policy() {
    let agent = |more: &str| {
        let text = format!(
            "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ndelegates = [\"default\"]\n{more}"
        );
        parse(&text, &[("KEY", "secret")]).unwrap().agents.remove(0)
    };
    let plain = agent("max_sub_agents = 2\nturn_timeout = \"5s\"\n");
    assert_eq!(
        (plain.max_depth, plain.max_sub_agents, plain.turn_timeout_ms),
        (3, 2, Some(5_000))
    );
    let tool = plain.tools.last().unwrap();
    assert_eq!(
        (
            tool.name.as_str(),
            tool.kind.as_str(),
            tool.delegates.as_slice()
        ),
        ("delegate", "delegate", &["default".to_owned()][..])
    );
    let asking = agent("tools = [{ name = \"delegate\", approval = \"always\" }, \"calculate\"]\n");
    assert_eq!(asking.tools.len(), 2);
    assert!(asking.tools[0].approval.is_some() && asking.tools[0].delegates == ["default"]);
    assert_eq!((asking.turn_timeout_ms, asking.max_sub_agents), (None, 16));
}

#[test]
fn a_wrong_agent_is_explained() {
    let agent = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";
    assert_errors(&[
        (
            "[agents.default]\nprovider = \"x\"\nmodel = \"m\"\ntypo = 1\n",
            "everturn.toml:4:1: unknown field `typo`",
        ),
        (
            "[agents.default]\nmodel = \"m\"\n",
            "missing field `provider`",
        ),
        (
            "[agents.default]\nprovider = \"x\"\nmodel = \"m\"\n",
            "everturn.toml:2:12: there is no provider `x`",
        ),
        (
            &format!("{PROVIDER}{agent}llm_timeout = \"soon\"\n"),
            "7:15: `llm_timeout` must be a duration like",
        ),
        (
            &format!("{PROVIDER}{agent}llm_timeout = \"2h\"\n"),
            "7:15: `llm_timeout` must be from 1s to 1h",
        ),
        (
            &format!("{PROVIDER}{agent}max_steps = 0\n"),
            "7:13: `max_steps` must be from 1 to 100000, not 0",
        ),
        (
            &format!("{PROVIDER}{agent}max_depth = 0\n"),
            "7:13: `max_depth` must be from 1 to 10",
        ),
        (
            &format!("{PROVIDER}{agent}turn_timeout = \"2days\"\n"),
            "7:16: `turn_timeout` must be from 1s to 1day",
        ),
        (PROVIDER, "everturn.toml:1:1: there is no [agents.default]"),
    ]);
}

#[test]
fn wrong_tools_and_delegates_of_an_agent_are_explained() {
    let agent = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";
    assert_errors(&[
        (
            format!("{PROVIDER}{agent}tools = [\"calc\"]\n"),
            "7:10: there is no tool `calc`; there are: calculate",
        ),
        (
            format!("{PROVIDER}{agent}tools = [5]\n"),
            "7:10: write a tool as \"name\" or {",
        ),
        (
            format!("{PROVIDER}{agent}tools = [{{ name = \"calculate\", time = \"1s\" }}]\n"),
            "7:10: a tool has no `time`",
        ),
        (
            format!("{PROVIDER}{agent}tools = [{{ timeout = \"1s\" }}]\n"),
            "7:10: write a tool as",
        ),
        (
            format!("{PROVIDER}{agent}tools = [\"calculate\", \"calculate\"]\n"),
            "7:23: tool `calculate` is named twice",
        ),
        (
            format!("{PROVIDER}{agent}delegates = [\"x\"]\n"),
            "7:14: there is no agent `x`; there are: default",
        ),
        (
            format!("{PROVIDER}{agent}tools = [\"delegate\"]\n"),
            "7:10: tool `delegate` needs `delegates`",
        ),
        (
            format!("{PROVIDER}{agent}delegates = [\"default\", \"default\"]\n"),
            "7:25: agent `default` is named twice",
        ),
        (
            format!("{PROVIDER}{agent}tools = [{{ name = \"delegate\", timeout = \"1s\" }}]\n"),
            "7:10: tool `delegate` has no `timeout`",
        ),
        (
            "[client_tools.delegate]\ndescription = \"d\"\n".to_owned(),
            "there already is a tool `delegate`",
        ),
    ]);
}
