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
            agent.llm_total_timeout_ms,
            agent.max_steps,
            agent.tools[1].timeout_ms
        ),
        (120_000, 1_800_000, 3, 30_000)
    );
    assert_eq!(
        config.providers["main"].base_url.as_deref(),
        Some("http://localhost:1/v1")
    );
    assert!(
        !format!("{config:?}").contains("secret"),
        "keys stay out of logs"
    );
}

#[test]
fn a_whole_call_may_last_at_least_as_long_as_a_silence() {
    let limits = |lines: &str| {
        let text =
            format!("{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n{lines}");
        let config = parse(&text, &[("KEY", "secret")]).unwrap();
        let agent = &config.agents[0];
        (agent.llm_timeout_ms, agent.llm_total_timeout_ms)
    };
    assert_eq!(limits(""), (60_000, 1_800_000));
    assert_eq!(limits("llm_timeout = \"1h\"\n"), (3_600_000, 3_600_000));
    assert_eq!(limits("llm_total_timeout = \"2m\"\n"), (60_000, 120_000));
}

#[test]
fn an_agent_waits_ten_minutes_for_a_provider_unless_another_time_is_written() {
    let patience = |line: &str| {
        let text =
            format!("{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n{line}");
        let config = parse(&text, &[("KEY", "secret")]).unwrap();
        config.agents[0].patience_ms
    };
    assert_eq!(patience(""), 600_000);
    assert_eq!(patience("patience = \"0s\"\n"), 0);
    assert_eq!(patience("patience = \"1h\"\n"), 3_600_000);
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
            &format!("{PROVIDER}{agent}llm_total_timeout = \"59s\"\n"),
            "7:21: `llm_total_timeout` limits a whole call, and must be at least `llm_timeout`",
        ),
        (
            &format!("{PROVIDER}{agent}patience = \"2h\"\n"),
            "7:12: `patience` must be from 0s to 1h",
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
        (PROVIDER, "everturn.toml:1:1: [agents.default] is missing"),
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

/// An agent of a provider of this kind, with these lines.
fn agent_of(kind: &str, lines: &str) -> String {
    let url = "base_url = \"https://x.example.com/v1/\"\n";
    format!(
        "[providers.main]\nkind = \"{kind}\"\n{url}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n{lines}\n"
    )
}

#[test]
fn an_agent_has_the_parameters_that_are_written() {
    let lines = "temperature = 1\ntop_p = 0.5\nreasoning_effort = \"low\"\nstop = [\"END\"]\nseed = 7\n\
                 extra_body = { service_tier = \"flex\", nested = { a = [1, 2.5] } }";
    for kind in ["openai", "azure", "gemini"] {
        let agent = parse(&agent_of(kind, lines), &[]).unwrap().agents.remove(0);
        assert_eq!((agent.temperature, agent.top_p), (Some(1.0), Some(0.5)));
        assert_eq!(agent.reasoning_effort.as_deref(), Some("low"));
        assert_eq!(
            (&*agent.stop, agent.seed),
            (&["END".to_owned()][..], Some(7))
        );
        let extra = agent.extra_body.unwrap().to_value();
        assert_eq!(
            extra,
            serde_json::json!({"service_tier": "flex", "nested": {"a": [1, 2.5]}})
        );
    }
    let nothing = parse(&agent_of("openai", ""), &[])
        .unwrap()
        .agents
        .remove(0);
    assert_eq!(
        (nothing.temperature, nothing.seed, nothing.extra_body),
        (None, None, None)
    );
}

#[test]
fn parameters_that_cannot_be_sent_are_refused() {
    let long = format!("extra_body = {{ a = \"{}\" }}", "x".repeat(17_000));
    let many = format!("stop = [{}]", "\"x\",".repeat(17));
    assert_errors(&[
        (
            agent_of("anthropic", "seed = 1"),
            "kind `anthropic` has no `seed`",
        ),
        (
            agent_of("anthropic", "temperature = 1.5"),
            "`temperature` must be from 0 to 1",
        ),
        (
            agent_of("openai", "temperature = 2.5"),
            "`temperature` must be from 0 to 2",
        ),
        (
            agent_of("gemini", "temperature = nan"),
            "`temperature` must be from 0 to 2",
        ),
        (
            agent_of("openai", "top_p = -0.1"),
            "`top_p` must be from 0 to 1",
        ),
        (
            agent_of("openai", "reasoning_effort = \"much\""),
            "is one of none, minimal, low, medium, high, xhigh, max",
        ),
        (
            agent_of("anthropic", "reasoning_effort = \"minimal\""),
            "is one of none, low, medium, high, xhigh, max",
        ),
        (
            agent_of("gemini", "reasoning_effort = \"max\""),
            "is one of minimal, low, medium, high, not \"max\"",
        ),
        (
            agent_of("openai", "stop = [\"\"]"),
            "has 1 to 200 characters",
        ),
        (agent_of("openai", &many), "`stop` has at most 16 texts"),
        (
            agent_of("gemini", "seed = 4294967295"),
            "`seed` must be from 0 to 2147483647",
        ),
        (
            agent_of("openai", "extra_body = { messages = [] }"),
            "must not have `messages`",
        ),
        (
            agent_of("gemini", "extra_body = { contents = [] }"),
            "must not have `contents`",
        ),
        (
            agent_of("openai", "extra_body = { a = [2026-11-30] }"),
            "holds a date",
        ),
        (
            agent_of("openai", "extra_body = { a = inf }"),
            "a number that JSON does not have",
        ),
        (agent_of("openai", &long), "longer than 16384 bytes"),
    ]);
}

#[test]
fn the_responses_api_has_parameters_of_its_own() {
    assert_errors(&[
        (
            agent_of("openai_responses", "seed = 1"),
            "kind `openai_responses` has no `seed`",
        ),
        (
            agent_of("openai_responses", "stop = [\"END\"]"),
            "kind `openai_responses` has no `stop`",
        ),
        (
            agent_of("openai_responses", "extra_body = { store = false }"),
            "must not have `store`",
        ),
    ]);
    let lines = "temperature = 1\nreasoning_effort = \"high\"\nextra_body = { reasoning = { summary = \"auto\" } }";
    let agent = parse(&agent_of("openai_responses", lines), &[]).unwrap();
    assert_eq!(agent.agents[0].reasoning_effort.as_deref(), Some("high"));
}

#[test]
fn only_the_responses_api_has_responses_in_the_background() {
    let table = |kind: &str, line: &str| {
        let agent = "[agents.default]\nprovider = \"p\"\nmodel = \"m\"\n";
        format!("[providers.p]\nkind = \"{kind}\"\n{line}\n{agent}")
    };
    for (kind, line, expected) in [
        ("openai_responses", "", true),
        ("openai_responses", "background = false", false),
        ("openai", "", false),
    ] {
        let config = parse(&table(kind, line), &[]).unwrap();
        assert_eq!(config.providers["p"].background, expected, "{kind} {line}");
    }
    assert_errors(&[(
        table("openai", "background = true"),
        "only providers of kind `openai_responses` make responses in the background",
    )]);
}

#[test]
fn a_provider_of_azure_has_an_address_and_headers_come_from_the_environment() {
    assert_errors(&[
        (
            "[providers.a]\nkind = \"azure\"\n",
            "a provider of kind `azure` needs `base_url`",
        ),
        (
            "[providers.a]\nkind = \"openai\"\nheaders_env = { x-token = \"secret value\" }\n",
            "`headers_env` is the name of an environment variable",
        ),
        (
            "[providers.a]\nkind = \"openai\"\nmax_concurrent_calls = 0\n",
            "`max_concurrent_calls` must be from 1 to 10000",
        ),
        (
            "[providers.a]\nkind = \"openai\"\nrequests_per_minute = 0\n",
            "`requests_per_minute` must be from 1 to 100000",
        ),
        (
            "[providers.a]\nkind = \"openai\"\ntokens_per_minute = 0\n",
            "`tokens_per_minute` must be from 1 to 10000000000",
        ),
        (
            "[providers.a]\nkind = \"openai\"\nheaders_env = { x-token = \"NOPE\" }\n",
            "the environment variable NOPE named by `headers_env` is not set",
        ),
    ]);
    let text =
        agent_of("azure", "").replace("[agents", "headers_env = { x-token = \"KEY\" }\n[agents");
    let config = parse(&text, &[("KEY", "the-secret")]).unwrap();
    assert_eq!(config.providers["main"].headers["x-token"], "the-secret");
    assert!(!format!("{config:?}").contains("the-secret"));
}

#[test]
fn samples_are_for_gateways_and_not_part_of_the_definition() {
    let text = |samples: &str| {
        format!(
            "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\nsamples = [{samples}]\n"
        )
    };
    let [with, without] = ["\"What is 21 * 2?\"", ""].map(|samples| {
        let config = parse(&text(samples), &[("KEY", "k")]).unwrap();
        (config.agents, config.gateway.agents)
    });
    assert_eq!(with.1[0].samples, ["What is 21 * 2?"]);
    assert_eq!(with.0, without.0, "another sample is no other agent");
    assert_errors(&[
        (
            text("\"a\", ").replace("\"a\", ", &"\"a\", ".repeat(9)),
            "`samples` has at most 8 messages",
        ),
        (text("\" \""), "`samples` must not be empty"),
        (
            text(&format!("\"{}\"", "x".repeat(501))),
            "has a text of 501 bytes, but the limit is 500",
        ),
    ]);
}

#[test]
fn the_owner_of_an_agent_is_not_part_of_the_definition() {
    let text = |keys: &str| {
        format!("{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n{keys}\n")
    };
    let [with, without] = ["owner = \"Billing\"\ncontact = \"#billing\"", ""].map(|keys| {
        let config = parse(&text(keys), &[("KEY", "k")]).unwrap();
        (config.responsible()["default"].clone(), config.agents)
    });
    assert_eq!(with.0.owner.as_deref(), Some("Billing"));
    assert_eq!(with.0.contact.as_deref(), Some("#billing"));
    assert!(without.0.is_empty());
    assert_eq!(with.1, without.1, "another owner is no other agent");
    assert_errors(&[
        (text("owner = \" \""), "`owner` must not be empty"),
        (
            text(&format!("contact = \"{}\"", "x".repeat(201))),
            "has a text of 201 bytes, but the limit is 200",
        ),
        (
            text("contact = \"a\\nb\""),
            "`contact` must be a single line",
        ),
    ]);
}

#[test]
fn an_agent_may_be_for_some_tenants() {
    let text = |tenants: &str| {
        format!(
            "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n[agents.clerk]\nprovider = \"main\"\nmodel = \"m\"\ntenants = {tenants}\n"
        )
    };
    let config = parse(&text("[\"acme\", \"globex\"]"), &[("KEY", "k")]).unwrap();
    let clerk = config.agents.iter().find(|agent| agent.name == "clerk");
    assert!(clerk.unwrap().serves("acme") && !clerk.unwrap().serves("other"));
    let offered = config.gateway.agents.iter();
    let tenants: Vec<_> = offered
        .map(|agent| {
            (
                agent.definition.name.as_str(),
                agent.definition.tenants.len(),
            )
        })
        .collect();
    assert_eq!(tenants, [("clerk", 2), ("default", 0)]);
    assert_errors(&[
        (text("[]"), "10:11: `tenants` names 1 to 1000 tenants"),
        (text("[\"a/b\"]"), "a tenant must have 1 to 100 letters"),
        (text("[\"a\", \"a\"]"), "tenant `a` is named twice"),
    ]);
}
