//! What a configuration may be, and what its errors say.

mod agent_tools;
mod agents;
mod agents_d;
mod auth;
mod budgets;
mod caller;
mod calls;
mod documented;
mod examples;
mod fallback;
mod gateway;
mod hooks;
mod hostile;
mod http;
mod mcp;
mod models;
mod output;
mod outside;
mod postgres;
mod probes;
mod problems;
mod processes;
mod providers;
mod reloaded;
mod remote;
mod skills;
mod start;
mod worker;

use super::{Config, ConfigError, ReadBy};

const PROVIDER: &str = "[providers.main]\nkind = \"openai\"\napi_key_env = \"KEY\"\n";

fn tools() -> Vec<String> {
    ["calculate", "current_time", "work_plan"]
        .map(str::to_owned)
        .to_vec()
}

/// What a worker with the built-in tools and this environment makes of the text.
fn parse(text: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let lookup = |name: &str| {
        environment
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    };
    let read_by = ReadBy::Worker {
        tools: &tools(),
        environment: &lookup,
    };
    Config::parse(text, "everturn.toml", read_by)
}

fn error(text: &str) -> String {
    parse(text, &[("KEY", "secret")]).unwrap_err().to_string()
}

/// Each text has an error that contains what is expected.
fn assert_errors<T: AsRef<str>>(cases: &[(T, &str)]) {
    for (text, expected) in cases {
        let text = text.as_ref();
        let message = error(text);
        assert!(
            message.contains(expected),
            "{text}\n→ {message}\nexpected {expected}"
        );
    }
}
