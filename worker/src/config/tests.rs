//! What a configuration may be, and what its errors say.

use super::*;

fn tools() -> Vec<String> {
    ["calculate", "current_time", "work_plan"]
        .map(str::to_owned)
        .to_vec()
}

fn parse(text: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let lookup = |name: &str| {
        environment
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    };
    Config::parse(text, "everturn.toml", Some(&tools()), &lookup)
}

fn error(text: &str) -> String {
    parse(text, &[("KEY", "secret")]).unwrap_err().to_string()
}

const PROVIDER: &str = "[providers.main]\nkind = \"openai\"\napi_key_env = \"KEY\"\n";

#[test]
fn without_a_file_the_demo_model_answers() {
    let config = parse("", &[]).unwrap();
    assert!(config.needs_demo_model());
    assert_eq!(config.agents[0].name, "default");
    assert_eq!(config.agents[0].tools.len(), 3);
    assert_eq!(
        (
            config.agents[0].llm_timeout_ms,
            config.agents[0].tools[0].timeout_ms
        ),
        (60_000, 300_000)
    );
}

#[test]
fn a_key_in_the_environment_is_enough() {
    let config = parse(
        "",
        &[("ANTHROPIC_API_KEY", "k"), ("EVERTURN_MODEL", "some-model")],
    )
    .unwrap();
    assert!(!config.needs_demo_model());
    assert_eq!(
        (
            config.agents[0].provider.as_str(),
            config.agents[0].model.as_str()
        ),
        ("anthropic", "some-model")
    );
}

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
fn tools_may_ask_a_person_or_the_client() {
    let text = format!(
        "{PROVIDER}[client_tools.open_file]\ndescription = \"Reads a file.\"\neffect = \"read\"\n\
         input = {{ required = [\"path\"] }}\n\
         [agents.default]\nprovider = \"main\"\nmodel = \"m\"\n\
         tools = [\"open_file\", {{ name = \"calculate\", approval = \"always\" }}, \
         {{ name = \"current_time\", approval = {{ when = {{ required = [\"zone\"] }}, timeout = \"2h\" }} }}, \
         {{ name = \"work_plan\", approval = \"never\" }}]\n"
    );
    let config = parse(&text, &[("KEY", "secret")]).unwrap();
    let [client, always, rule, never] = &config.agents[0].tools[..] else {
        panic!("{config:?}")
    };
    assert_eq!(
        (client.kind.as_str(), client.timeout_ms),
        ("client", 3_600_000)
    );
    let policy = |tool: &everturn_proto::turn::AgentTool| {
        let policy = tool.approval.as_ref()?;
        Some((
            policy.when.as_ref().map(|when| when.as_str().to_owned()),
            policy.timeout_s,
        ))
    };
    assert_eq!(policy(always), Some((None, 72 * 3600)));
    assert_eq!(
        policy(rule),
        Some((Some(r#"{"required":["zone"]}"#.to_owned()), 7200))
    );
    assert_eq!((policy(never), policy(client)), (None, None));
    let spec = &config.client_tools[0].0;
    assert_eq!(
        (spec.effect.as_str(), &spec.parameters["type"]),
        ("read", &"object".into())
    );

    let agent = |tool: &str| {
        format!(
            "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [{tool}]\n"
        )
    };
    for (text, expected) in [
        (
            agent("{ name = \"calculate\", approval = \"sometimes\" }"),
            "write `approval` as",
        ),
        (
            agent("{ name = \"calculate\", approval = { timeout = \"32days\" } }"),
            "from 1s to 31days",
        ),
        (
            agent("{ name = \"calculate\", approval = { wen = {} } }"),
            "an approval has no `wen`",
        ),
        (
            agent("{ name = \"calculate\", approval = { when = { type = 5 } } }"),
            "not a JSON schema",
        ),
        (
            format!(
                "{}[client_tools.calculate]\ndescription = \"x\"\n",
                agent("")
            ),
            "there already is a tool `calculate`",
        ),
        (
            format!("{}[client_tools.new]\ndescription = \" \"\n", agent("")),
            "must not be empty",
        ),
        (
            format!(
                "{}[client_tools.new]\ndescription = \"x\"\ninput = {{ type = 5 }}\n",
                agent("")
            ),
            "not a JSON schema",
        ),
    ] {
        assert!(error(&text).contains(expected), "{text}\n{}", error(&text));
    }
}

#[test]
fn limits_of_a_tenant_have_defaults_and_can_be_taken_away() {
    let tenant = parse(
        "[limits]\nrequests_per_second = 0\nconcurrent_turns = 7\n",
        &[],
    )
    .unwrap()
    .limits
    .tenant;
    assert_eq!(
        (tenant.requests_per_second, tenant.request_burst),
        (0, 2000)
    );
    assert_eq!((tenant.concurrent_turns, tenant.open_streams), (7, 5000));
}

#[test]
fn a_gateway_takes_what_is_written() {
    let text = "[gateway]\nheartbeat = \"150ms\"\nretry_min = \"5s\"\nreader_buffer = 65536\nmax_streams = 2\n\
                linger = \"0s\"\npoll_interval = \"20ms\"\nstall_timeout = \"300ms\"\ndrain = \"0s\"\nshutdown_grace = \"1s\"\n";
    let gateway = parse(text, &[]).unwrap().gateway;
    let limits = gateway.limits;
    let ms = Duration::from_millis;
    assert_eq!(
        (limits.heartbeat, limits.linger, limits.stall_timeout),
        (ms(150), ms(0), ms(300))
    );
    assert_eq!(
        (limits.drain, limits.shutdown_grace, gateway.poll_interval),
        (ms(0), ms(1000), Some(ms(20)))
    );
    assert_eq!(
        (limits.retry, limits.reader_buffer, limits.max_streams),
        (ms(5000)..=ms(5000), 65536, 2)
    );
    assert_eq!(parse("", &[]).unwrap().gateway.poll_interval, None);
}

#[test]
fn errors_name_file_line_key_and_remedy() {
    let agent = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";
    for (text, expected) in [
        ("[agents", "everturn.toml:1:"),
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
            "[providers.a]\nkind = \"other\"\n",
            "everturn.toml:2:8: unknown variant `other`",
        ),
        (
            "[providers.a]\nkind = \"openai\"\napi_key_env = \"NOPE\"\n",
            "3:15: the environment variable NOPE",
        ),
        (
            "[providers.a]\nkind = \"openai\"\nbase_url = \"ftp://x\"\n",
            "3:12: `base_url` must be an http",
        ),
        (
            &format!("{PROVIDER}{agent}tools = [\"calc\"]\n"),
            "7:10: there is no tool `calc`; there are: calculate",
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
            "7:13: `max_steps` must be from 1 to 1000, not 0",
        ),
        (
            &format!("{PROVIDER}{agent}tools = [5]\n"),
            "7:10: write a tool as \"name\" or {",
        ),
        (
            &format!("{PROVIDER}{agent}tools = [{{ name = \"calculate\", time = \"1s\" }}]\n"),
            "7:10: a tool has no `time`",
        ),
        (
            &format!("{PROVIDER}{agent}tools = [{{ timeout = \"1s\" }}]\n"),
            "7:10: write a tool as",
        ),
        (
            &format!("{PROVIDER}{agent}tools = [\"calculate\", \"calculate\"]\n"),
            "7:23: tool `calculate` is named twice",
        ),
        (
            &format!("{PROVIDER}{agent}delegates = [\"x\"]\n"),
            "7:14: there is no agent `x`; there are: default",
        ),
        (
            &format!("{PROVIDER}{agent}tools = [\"delegate\"]\n"),
            "7:10: tool `delegate` needs `delegates`",
        ),
        (
            &format!("{PROVIDER}{agent}delegates = [\"default\", \"default\"]\n"),
            "7:25: agent `default` is named twice",
        ),
        (
            &format!("{PROVIDER}{agent}tools = [{{ name = \"delegate\", timeout = \"1s\" }}]\n"),
            "7:10: tool `delegate` has no `timeout`",
        ),
        (
            &format!("{PROVIDER}{agent}max_depth = 0\n"),
            "7:13: `max_depth` must be from 1 to 10",
        ),
        (
            &format!("{PROVIDER}{agent}turn_timeout = \"2days\"\n"),
            "7:16: `turn_timeout` must be from 1s to 1day",
        ),
        (
            "[client_tools.delegate]\ndescription = \"d\"\n",
            "there already is a tool `delegate`",
        ),
        (PROVIDER, "everturn.toml:1:1: there is no [agents.default]"),
        (
            "[limits]\nmessage_bytes = 999999999\n",
            "2:17: `message_bytes` must be from 1 to",
        ),
        (
            "[limits]\nrequest_burst = 0\n",
            "2:17: `request_burst` must be from 1 to 1000000, not 0",
        ),
        (
            "[limits]\nopen_streams = 2000000\n",
            "2:16: `open_streams` must be from 0 to 1000000, not 2000000",
        ),
        ("[gateway]\ntypo = 1\n", "2:1: unknown field `typo`"),
        (
            "[gateway]\n\nheartbeat = \"1ms\"\n",
            "3:13: `heartbeat` must be from 10ms to 1h, not \"1ms\"",
        ),
        (
            "[gateway]\nretry_min = \"2s\"\nretry_max = \"1s\"\n",
            "3:13: `retry_max` must be from 2s to 1h",
        ),
        (
            "[gateway]\nmax_streams = 0\n",
            "2:15: `max_streams` must be from 1 to 1000000, not 0",
        ),
    ] {
        let message = error(text);
        assert!(
            message.contains(expected),
            "{text}\n→ {message}\nexpected {expected}"
        );
    }
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
        (3, 2, 5_000)
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
    assert_eq!((asking.turn_timeout_ms, asking.max_sub_agents), (0, 16));
}

#[test]
fn a_key_in_the_file_is_refused_without_repeating_it() {
    let message = error("[providers.a]\nkind = \"openai\"\napi_key_env = \"sk-abc123\"\n");
    assert!(
        message.contains("3:15: `api_key_env` is the name of an environment variable"),
        "{message}"
    );
    assert!(!message.contains("abc123"), "{message}");
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = "[agents.default]\nprovider = \"x\"\nmodel = \"\"\nmax_steps = 0\n";
    assert_eq!(error(text).lines().count(), 4);
}

#[test]
fn the_example_file_is_valid() {
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../everturn.example.toml");
    let text = fs::read_to_string(example).unwrap();
    let config = parse(&text, &[("OPENAI_API_KEY", "k")]).unwrap();
    assert_eq!(config.agents[0].tools[2].timeout_ms, 30_000);
    let (written, default) = (
        config.gateway.limits,
        everturn_gateway::GatewayConfig::default(),
    );
    assert_eq!(
        format!("{written:?}"),
        format!("{default:?}"),
        "the example shows the defaults"
    );
}

const TOOL: &str = "[tools.users]\ndescription = \"Finds users.\"\n";

#[test]
fn an_endpoint_becomes_a_tool() {
    let text = format!(
        "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"users\"]\n{TOOL}method = \"POST\"\n\
         url = \"https://api.example.com/users/{{id}}\"\n\
         input = {{ properties = {{ id = {{ type = \"integer\" }}, name = {{ type = \"string\" }} }}, required = [\"id\"] }}\n\
         auth = {{ bearer_env = \"TOKEN\", headers_env = {{ x-api-key = \"KEY\" }} }}\nheaders = {{ accept = \"text/csv\" }}\n\
         effect = \"idempotent\"\ntimeout = \"2m\"\nmax_response_bytes = 20000\nidempotency_header = \"X-Request-Id\"\n\
         [egress]\nallow = [\"10.1.0.0/16\", \"localhost:8080\"]\n"
    );
    let environment = [("KEY", "secret-key"), ("TOKEN", "secret-token")];
    let config = parse(&text, &environment).unwrap();
    let tool = &config.http_tools[0];
    assert_eq!(
        (tool.spec.name.as_str(), tool.spec.effect.as_str()),
        ("users", "idempotent")
    );
    assert_eq!(tool.spec.parameters["type"], "object");
    assert_eq!(
        (tool.timeout, tool.max_response_bytes),
        (Duration::from_secs(120), 20_000)
    );
    assert_eq!(
        (
            tool.headers["accept"].as_bytes(),
            tool.idempotency_header.as_str()
        ),
        (&b"text/csv"[..], "x-request-id")
    );
    assert_eq!(tool.secrets["authorization"], "Bearer secret-token");
    assert_eq!(tool.secrets["x-api-key"], "secret-key");
    assert_ne!(
        config.egress,
        everturn_activities::egress::EgressPolicy::default()
    );
    assert!(
        !format!("{config:?}").contains("secret-"),
        "secrets stay out of logs"
    );
}

#[test]
fn a_tool_needs_little() {
    let text = format!("{TOOL}url = \"https://api.example.com/users\"\n");
    let tool = &parse(&text, &[]).unwrap().http_tools[0];
    assert_eq!(
        (tool.method.as_str(), tool.spec.effect.as_str()),
        ("GET", "read")
    );
    assert_eq!(tool.idempotency_header.as_str(), "idempotency-key");
    let delete = parse(&format!("{text}method = \"DELETE\"\n"), &[]).unwrap();
    assert_eq!(
        delete.http_tools[0].spec.effect.as_str(),
        "once",
        "but for GET, a tool must not run twice"
    );
}

#[test]
fn a_wrong_tool_is_explained() {
    let url = "url = \"https://h/{id}?q={q}\"\n";
    let input = "input = { properties = { id = {}, q = {} }, required = [\"id\"] }\n";
    for (text, expected) in [
        (
            format!("{TOOL}url = \"https://{{h}}/\"\n"),
            "3:7: `url` cannot be used: an input cannot be part of the host",
        ),
        (format!("{TOOL}{url}"), "`{id}` is no property of `input`"),
        (
            format!("{TOOL}{url}input = {{ properties = {{ id = {{}}, q = {{}} }} }}\n"),
            "put it into `required`",
        ),
        (
            format!("{TOOL}url = \"https://h/\"\n{input}"),
            "`id` of `input` has no place in `url`, and a GET has no body",
        ),
        (
            format!("{TOOL}{url}{input}method = \"TRACE\"\n"),
            "5:10: unknown variant `TRACE`",
        ),
        (
            format!("{TOOL}{url}{input}effect = \"twice\"\n"),
            "5:10: unknown variant `twice`",
        ),
        (
            format!("{TOOL}{url}{input}timeout = \"2h\"\n"),
            "5:11: `timeout` must be from 1s to 1h",
        ),
        (
            format!("{TOOL}{url}{input}max_response_bytes = 0\n"),
            "5:22: `max_response_bytes` must be from 16384 to 1048576",
        ),
        (
            format!("{TOOL}{url}{input}headers = {{ Authorization = \"x\" }}\n"),
            "`authorization` cannot be set here",
        ),
        (
            format!("{TOOL}{url}{input}headers = {{ \"a b\" = \"x\" }}\n"),
            "`a b` is no name of a header",
        ),
        (
            format!("{TOOL}{url}{input}headers = {{ a = \"x\\ny\" }}\n"),
            "holds characters that no header has",
        ),
        (
            format!("{TOOL}{url}{input}auth = {{ bearer_env = \"NOPE\" }}\n"),
            "the environment variable NOPE named by",
        ),
        (
            format!("{TOOL}{url}{input}auth = {{ bearer = \"x\" }}\n"),
            "unknown field `bearer`",
        ),
        (
            format!("{TOOL}{url}{input}input_file = \"x.json\"\n"),
            "keep one of them",
        ),
        (
            format!("{TOOL}{url}input_file = \"no_such_file.json\"\n"),
            "`input_file` no_such_file.json cannot be used",
        ),
        (
            format!("[tools.t]\ndescription = \" \"\n{url}{input}"),
            "2:15: `description` is what the model",
        ),
        (
            format!("[tools.calculate]\ndescription = \"x\"\n{url}{input}"),
            "1:8: there already is a tool `calculate`",
        ),
        (
            "[egress]\nallow = [\"10.0.0.1/8\"]\n".to_owned(),
            "2:10: `10.0.0.1/8` cannot be allowed: it has bits behind",
        ),
    ] {
        let message = error(&text);
        assert!(
            message.contains(expected),
            "{text}\n→ {message}\nexpected {expected}"
        );
    }
    let message = error(&format!(
        "{TOOL}{url}{input}auth = {{ bearer_env = \"sk-abc123\" }}\n"
    ));
    assert!(!message.contains("abc123"), "{message}");
}

#[test]
fn a_schema_may_be_in_a_file_of_its_own() {
    let directory = std::env::temp_dir().join(format!("everturn-schema-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::write(
        directory.join("id.json"),
        r#"{"properties": {"id": {"type": "integer"}}, "required": ["id"]}"#,
    )
    .unwrap();
    fs::write(
        directory.join("everturn.toml"),
        format!("{TOOL}url = \"https://h/{{id}}\"\ninput_file = \"id.json\"\n"),
    )
    .unwrap();
    let config = Config::load(Some(&directory.join("everturn.toml")), &tools()).unwrap();
    assert_eq!(
        config.http_tools[0].spec.parameters["properties"]["id"]["type"],
        "integer"
    );
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_gateway_leaves_tools_to_the_workers() {
    let text = format!(
        "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"of_another_binary\"]\n\
         {TOOL}url = \"https://h/\"\ninput_file = \"not_here.json\"\n"
    );
    let config = Config::parse(&text, "everturn.toml", None, &|_| Some(String::new())).unwrap();
    assert_eq!(config.agents[0].tools[0].name, "of_another_binary");
    assert!(config.http_tools.is_empty());
}

#[test]
fn the_examples_of_the_guide_are_valid() {
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tools.md");
    let guide = fs::read_to_string(guide).unwrap();
    let section = guide
        .split("\n## ")
        .find(|section| section.starts_with("HTTP tools"))
        .unwrap();
    let example = section
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let config = parse(example, &[("ORDERS_TOKEN", "a"), ("ORDERS_KEY", "b")]).unwrap();
    assert_eq!(config.http_tools.len(), 2);
}

const REMOTE: &str = "[remote_tools.t]\ndescription = \"Does.\"\ntask_queue = \"q\"\n";

#[test]
fn a_remote_tool_is_called_as_written() {
    let agent = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"t\", { name = \"u\", timeout = \"9s\" }]\n";
    let other = "[remote_tools.u]\ndescription = \"Does.\"\ntask_queue = \"q\"\nactivity_type = \"a\"\neffect = \"read\"\n\
                 timeout = \"5s\"\nheartbeat_timeout = \"2s\"\nstart_timeout = \"3s\"\n";
    let config = parse(
        &format!("{PROVIDER}{agent}{REMOTE}{other}"),
        &[("KEY", "k")],
    )
    .unwrap();
    let [t, u] = &config.agents[0].tools[..] else {
        panic!("two tools")
    };
    let worker = |activity_type: &str, heartbeat_timeout_ms, start_timeout_ms| {
        let (task_queue, activity_type) = ("q".to_owned(), activity_type.to_owned());
        Some(everturn_proto::turn::RemoteTool {
            task_queue,
            activity_type,
            heartbeat_timeout_ms,
            start_timeout_ms,
        })
    };
    assert_eq!(
        (t.kind.as_str(), t.timeout_ms, &t.remote),
        ("remote", 300_000, &worker("t", 0, 60_000))
    );
    assert_eq!(
        (u.timeout_ms, &u.remote),
        (9_000, &worker("a", 2_000, 3_000)),
        "the agent's time-out wins"
    );
    let effects: Vec<_> = config
        .remote_tools
        .iter()
        .map(|tool| tool.0.effect.as_str())
        .collect();
    assert_eq!(effects, ["once", "read"]);
}

#[test]
fn a_wrong_remote_tool_is_explained() {
    for (text, expected) in [
        (
            REMOTE.replace("\"q\"", "\"\""),
            "3:14: `task_queue` and `activity_type` have 1 to 1000 bytes",
        ),
        (
            REMOTE.replace(".t]", ".calculate]"),
            "there already is a tool `calculate`",
        ),
        (
            format!("{REMOTE}start_timeout = \"0s\"\n"),
            "`start_timeout` must be from 1s",
        ),
        (format!("{REMOTE}url = \"x\"\n"), "unknown field `url`"),
        (
            "[remote_tools.t]\ndescription = \"Does.\"\n".to_owned(),
            "missing field `task_queue`",
        ),
    ] {
        let message = error(&text);
        assert!(
            message.contains(expected),
            "{text}\n→ {message}\nexpected {expected}"
        );
    }
}
