//! What a configuration may be, and what its errors say.

use super::*;

fn tools() -> Vec<String> {
    ["calculate", "current_time", "work_plan"].map(str::to_owned).to_vec()
}

fn parse(text: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let lookup =
        |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Config::parse(text, "everturn.toml", &tools(), &lookup)
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
    assert_eq!((config.agents[0].llm_timeout_ms, config.agents[0].tools[0].timeout_ms), (60_000, 300_000));
}

#[test]
fn a_key_in_the_environment_is_enough() {
    let config = parse("", &[("ANTHROPIC_API_KEY", "k"), ("EVERTURN_MODEL", "some-model")]).unwrap();
    assert!(!config.needs_demo_model());
    assert_eq!((config.agents[0].provider.as_str(), config.agents[0].model.as_str()), ("anthropic", "some-model"));
}

#[test]
fn an_agent_takes_what_is_written() {
    let text = format!(
        "{PROVIDER}base_url = \"http://localhost:1/v1\"\n[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n\
         tools = [\"calculate\", {{ name = \"work_plan\", timeout = \"30s\" }}]\nllm_timeout = \"2m\"\nmax_steps = 3\n"
    );
    let config = parse(&text, &[("KEY", "secret")]).unwrap();
    let agent = &config.agents[0];
    assert_eq!((agent.llm_timeout_ms, agent.max_steps, agent.tools[1].timeout_ms), (120_000, 3, 30_000));
    assert_eq!(config.providers["main"].base_url.as_deref(), Some("http://localhost:1/v1/"));
    assert!(!format!("{config:?}").contains("secret"), "keys stay out of logs");
}

#[test]
fn errors_name_file_line_key_and_remedy() {
    let agent = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";
    for (text, expected) in [
        ("[agents", "everturn.toml:1:"),
        ("[agents.default]\nprovider = \"x\"\nmodel = \"m\"\ntypo = 1\n", "everturn.toml:4:1: unknown field `typo`"),
        ("[agents.default]\nmodel = \"m\"\n", "missing field `provider`"),
        ("[agents.default]\nprovider = \"x\"\nmodel = \"m\"\n", "everturn.toml:2:12: there is no provider `x`"),
        ("[providers.a]\nkind = \"other\"\n", "everturn.toml:2:8: unknown variant `other`"),
        ("[providers.a]\nkind = \"openai\"\napi_key_env = \"NOPE\"\n", "3:15: the environment variable NOPE"),
        ("[providers.a]\nkind = \"openai\"\nbase_url = \"ftp://x\"\n", "3:12: `base_url` must be an http"),
        (&format!("{PROVIDER}{agent}tools = [\"calc\"]\n"), "7:10: there is no tool `calc`; there are: calculate"),
        (&format!("{PROVIDER}{agent}llm_timeout = \"soon\"\n"), "7:15: `llm_timeout` must be a duration like"),
        (&format!("{PROVIDER}{agent}llm_timeout = \"2h\"\n"), "7:15: `llm_timeout` must be from 1s to 1h"),
        (&format!("{PROVIDER}{agent}max_steps = 0\n"), "7:13: `max_steps` must be from 1 to 1000, not 0"),
        (&format!("{PROVIDER}{agent}tools = [5]\n"), "7:10: write a tool as \"name\" or {"),
        (
            &format!("{PROVIDER}{agent}tools = [{{ name = \"calculate\", time = \"1s\" }}]\n"),
            "7:10: a tool has no `time`",
        ),
        (&format!("{PROVIDER}{agent}tools = [{{ timeout = \"1s\" }}]\n"), "7:10: write a tool as"),
        (
            &format!("{PROVIDER}{agent}tools = [\"calculate\", \"calculate\"]\n"),
            "7:23: tool `calculate` is named twice",
        ),
        (&format!("{PROVIDER}{agent}delegates = [\"x\"]\n"), "7:14: there is no agent `x`; there are: default"),
        (&format!("{PROVIDER}{agent}tools = [\"delegate\"]\n"), "7:10: tool `delegate` needs `delegates`"),
        (&format!("{PROVIDER}{agent}delegates = [\"default\", \"default\"]\n"), "7:25: agent `default` is named twice"),
        (
            &format!("{PROVIDER}{agent}tools = [{{ name = \"delegate\", timeout = \"1s\" }}]\n"),
            "7:10: tool `delegate` has no `timeout`",
        ),
        (&format!("{PROVIDER}{agent}max_depth = 0\n"), "7:13: `max_depth` must be from 1 to 10"),
        (&format!("{PROVIDER}{agent}turn_timeout = \"2days\"\n"), "7:16: `turn_timeout` must be from 1s to 1day"),
        ("[client_tools.delegate]\ndescription = \"d\"\n", "there already is a tool `delegate`"),
        (PROVIDER, "everturn.toml:1:1: there is no [agents.default]"),
        ("[limits]\nmessage_bytes = 999999999\n", "2:17: `message_bytes` must be from 1 to"),
    ] {
        let message = error(text);
        assert!(message.contains(expected), "{text}\n→ {message}\nexpected {expected}");
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
    assert_eq!((plain.max_depth, plain.max_sub_agents, plain.turn_timeout_ms), (3, 2, 5_000));
    let tool = plain.tools.last().unwrap();
    assert_eq!(
        (tool.name.as_str(), tool.kind.as_str(), tool.delegates.as_slice()),
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
    assert!(message.contains("3:15: `api_key_env` is the name of an environment variable"), "{message}");
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
}
