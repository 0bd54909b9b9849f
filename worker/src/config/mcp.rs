//! `[mcp.<name>]`: servers whose tools agents may use. Secrets stay in the environment; the file names variables.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use everturn_activities::tools::{
    Effect,
    mcp::{Place, ServerOptions},
    names, skills,
};
use serde::Deserialize;
use toml::Spanned;

use super::check::{Checker, is_variable};

const CONNECT_TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_mins(5);
const IDLE_TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_hours(24);

/// The table as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    command: Option<Spanned<Vec<String>>>,
    cwd: Option<Spanned<PathBuf>>,
    #[serde(default)]
    env_from: Vec<Spanned<String>>,
    url: Option<Spanned<String>>,
    #[serde(default)]
    headers_env: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    effects: BTreeMap<String, Spanned<String>>,
    tools: Option<Vec<String>>,
    connect_timeout: Option<Spanned<String>>,
    idle_timeout: Option<Spanned<String>>,
    max_message_bytes: Option<Spanned<u32>>,
    max_tools: Option<Spanned<u32>>,
    max_concurrent_calls: Option<Spanned<u32>>,
}

impl Checker<'_> {
    pub(super) fn mcp(&mut self, tables: BTreeMap<Spanned<String>, Table>) -> Vec<ServerOptions> {
        tables
            .into_iter()
            .filter_map(|(name, table)| self.mcp_server(&name, table))
            .collect()
    }

    fn mcp_server(&mut self, name: &Spanned<String>, table: Table) -> Option<ServerOptions> {
        if !names::is_valid_source(name.get_ref()) {
            self.wrong(
                name,
                "the name of an MCP server has 1 to 30 letters, digits, `-` or single `_`, none of them at an end",
            );
        }
        if name.get_ref() == skills::SOURCE {
            self.wrong(name, "an MCP server cannot be called `skill`: that is what the tools of skills begin with");
        }
        let place = self.place_of(name, &table)?;
        let default = ServerOptions::new(name.get_ref(), place);
        let connect = table.connect_timeout.as_ref();
        let idle = table.idle_timeout.as_ref();
        Some(ServerOptions {
            effects: self.effects(table.effects),
            only: table.tools,
            connect_timeout: self.duration(
                "connect_timeout",
                connect,
                default.connect_timeout,
                CONNECT_TIMEOUTS,
            ),
            idle_timeout: idle.map(|idle| {
                self.duration("idle_timeout", Some(idle), Duration::ZERO, IDLE_TIMEOUTS)
            }),
            max_message_bytes: self.size(
                "max_message_bytes",
                table.max_message_bytes.as_ref(),
                default.max_message_bytes,
                1024..=64 * 1024 * 1024,
            ),
            max_tools: self.size(
                "max_tools",
                table.max_tools.as_ref(),
                default.max_tools,
                1..=1000,
            ),
            max_concurrent_calls: self.size(
                "max_concurrent_calls",
                table.max_concurrent_calls.as_ref(),
                default.max_concurrent_calls,
                1..=1000,
            ),
            ..default
        })
    }

    fn place_of(&mut self, name: &Spanned<String>, table: &Table) -> Option<Place> {
        match (&table.command, &table.url) {
            (Some(command), None) => {
                if command.get_ref().first().is_none_or(String::is_empty) {
                    self.wrong(
                        command,
                        "`command` is a program and its arguments, like [\"npx\", \"-y\", \"a-server\"]",
                    );
                }
                for header in table.headers_env.keys() {
                    self.wrong(header, "`headers_env` belongs to a server with a `url`");
                }
                Some(Place::Command {
                    command: command.get_ref().clone(),
                    directory: table
                        .cwd
                        .as_ref()
                        .map(|directory| directory.get_ref().clone()),
                    environment: table
                        .env_from
                        .iter()
                        .filter_map(|variable| self.inherited(variable))
                        .collect(),
                })
            }
            (None, Some(url)) => {
                let is_http = url
                    .get_ref()
                    .parse::<url::Url>()
                    .is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
                if !is_http {
                    self.wrong(
                        url,
                        "`url` must be an http or https URL, like \"https://example.com/mcp\"",
                    );
                }
                if let Some(directory) = &table.cwd {
                    self.wrong(directory, "`cwd` belongs to a server with a `command`");
                }
                for variable in &table.env_from {
                    self.wrong(variable, "`env_from` belongs to a server with a `command`");
                }
                let headers = table
                    .headers_env
                    .iter()
                    .filter_map(|(name, variable)| self.header(name, variable));
                Some(Place::Url {
                    url: url.get_ref().clone(),
                    headers: headers.collect(),
                })
            }
            _ => {
                self.wrong(name, "an MCP server has either a `command` or a `url`");
                None
            }
        }
    }

    /// A variable that the server gets under its own name.
    fn inherited(&mut self, variable: &Spanned<String>) -> Option<(String, String)> {
        let name = variable.get_ref();
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_fit) {
            self.wrong(
                variable,
                "`env_from` holds names of environment variables, like GITHUB_TOKEN, not values",
            );
            return None;
        }
        self.variable("env_from", variable)
            .map(|value| (name.clone(), value))
    }

    /// A header whose value, all of it, is in a variable.
    fn header(
        &mut self,
        name: &Spanned<String>,
        variable: &Spanned<String>,
    ) -> Option<(String, String)> {
        // Whoever writes the secret itself here must not find it in a log.
        if !is_variable(variable.get_ref()) {
            self.wrong(
                variable,
                "`headers_env` holds names of environment variables, like API_TOKEN, not values",
            );
            return None;
        }
        self.variable("headers_env", variable)
            .map(|value| (name.get_ref().clone(), value))
    }

    fn variable(&mut self, key: &str, variable: &Spanned<String>) -> Option<String> {
        let value = self.environment(variable.get_ref());
        if value.is_none() {
            let message = format!(
                "the environment variable {} named by `{key}` is not set",
                variable.get_ref()
            );
            self.wrong(variable, &message);
        }
        value
    }

    fn effects(&mut self, effects: BTreeMap<String, Spanned<String>>) -> BTreeMap<String, Effect> {
        let mut read = BTreeMap::new();
        for (tool, word) in effects {
            match [Effect::Read, Effect::Idempotent, Effect::Once]
                .into_iter()
                .find(|e| e.as_str() == word.get_ref())
            {
                Some(effect) => {
                    read.insert(tool, effect);
                }
                None => self.wrong(&word, "an effect is \"read\", \"idempotent\" or \"once\""),
            }
        }
        read
    }

    fn size(
        &mut self,
        key: &str,
        value: Option<&Spanned<u32>>,
        default: usize,
        range: std::ops::RangeInclusive<u32>,
    ) -> usize {
        value.map_or(default, |_| {
            usize::try_from(self.number(key, value, 0, range)).unwrap_or(default)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError};
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        let environment =
            |name: &str| matches!(name, "TOKEN" | "lower_case").then(|| "secret".to_owned());
        Config::parse(
            text,
            "everturn.toml",
            Some(&["calculate".to_owned()]),
            &environment,
        )
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_server_takes_what_is_written() {
        let text = "[mcp.files]\ncommand = [\"npx\", \"server\"]\ncwd = \"/srv\"\nenv_from = [\"TOKEN\", \"lower_case\"]\n\
                    effects = {\"*\" = \"once\", list = \"read\"}\ntools = [\"list\"]\nidle_timeout = \"20s\"\nmax_tools = 3\n\
                    [mcp.web]\nurl = \"https://example.com/mcp\"\nheaders_env = {authorization = \"TOKEN\"}\n";
        let servers = parse(text).unwrap().mcp;
        let [files, web] = &servers[..] else {
            panic!("{servers:?}")
        };
        assert_eq!(
            (
                files.name.as_str(),
                files.max_tools,
                files.max_concurrent_calls
            ),
            ("files", 3, 16)
        );
        assert_eq!(
            files.effects,
            BTreeMap::from([("*".into(), Effect::Once), ("list".into(), Effect::Read)])
        );
        assert_eq!(
            (files.idle_timeout, web.idle_timeout),
            (Some(Duration::from_secs(20)), None)
        );
        assert!(
            matches!(&files.place, Place::Command { environment, .. } if environment.len() == 2)
        );
        assert!(matches!(&web.place, Place::Url { headers, .. } if headers[0].1 == "secret"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (table, expected) in [
            ("[mcp.a__b]\ncommand = [\"x\"]", "single `_`"),
            ("[mcp.skill]\ncommand = [\"x\"]", "cannot be called `skill`"),
            ("[mcp.a]", "either a `command` or a `url`"),
            (
                "[mcp.a]\ncommand = [\"x\"]\nurl = \"http://x\"",
                "either a `command` or a `url`",
            ),
            ("[mcp.a]\ncommand = []", "a program and its arguments"),
            ("[mcp.a]\nurl = \"ftp://x\"", "http or https"),
            (
                "[mcp.a]\nurl = \"http://x\"\ncwd = \"/\"",
                "belongs to a server with a `command`",
            ),
            (
                "[mcp.a]\nurl = \"http://x\"\nheaders_env = {authorization = \"Bearer abc\"}",
                "not values",
            ),
            (
                "[mcp.a]\nurl = \"http://x\"\nheaders_env = {authorization = \"MISSING\"}",
                "MISSING named by `headers_env`",
            ),
            (
                "[mcp.a]\ncommand = [\"x\"]\nenv_from = [\"A=b\"]",
                "not values",
            ),
            (
                "[mcp.a]\ncommand = [\"x\"]\neffects = {t = \"write\"}",
                "\"read\", \"idempotent\" or \"once\"",
            ),
            (
                "[mcp.a]\ncommand = [\"x\"]\nmax_tools = 0",
                "`max_tools` must be from 1",
            ),
            (
                "[mcp.a]\ncommand = [\"x\"]\nconnect_timeout = \"1h\"",
                "`connect_timeout` must be from 1s",
            ),
            ("[mcp.a]\ncommand = [\"x\"]\nunknown = 1", "unknown field"),
        ] {
            let error = error(table);
            assert!(error.contains(expected), "{table}: {error}");
        }
    }

    #[test]
    fn agents_name_tools_of_servers_that_are_configured() {
        let agent = |tool: &str| {
            format!(
                "[mcp.files]\ncommand = [\"x\"]\n[providers.main]\nkind = \"openai\"\n\
                 [agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"calculate\", \"{tool}\"]\n"
            )
        };
        for good in ["files__read", "files__*"] {
            assert_eq!(parse(&agent(good)).unwrap().agents[0].tools[1].name, good);
        }
        assert!(error(&agent("web__*")).contains("there is no MCP server `web`; there are: files"));
        assert!(error(&agent("files__re*")).contains("`files__<tool>`"));
        assert!(error(&agent("files__")).contains("`files__<tool>`"));
    }
}
