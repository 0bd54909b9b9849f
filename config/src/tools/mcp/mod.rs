//! `[mcp.NAME]`: MCP servers, whose tools agents may use.
//!
//! - `oauth`: `[mcp.NAME.oauth]`, how the worker requests tokens for a server
//! - `per`: who shares a connection, and secrets in files per tenant

mod oauth;
mod per;

use std::{collections::BTreeMap, ops::RangeInclusive, path::PathBuf, time::Duration};

use everturn_supervisor::launch::Launch;
use everturn_tools::{
    Effect,
    mcp::{OAuthOptions, PerTenant, SecretFile, ServerLocation, ServerOptions},
    names as tool_names, skills,
};
use serde::Deserialize;
use toml::Spanned;

use self::{oauth::OAuthTable, per::PerWord};
use crate::{
    checker::{Checker, SECOND},
    names::Names,
    processes::{ProcessRules, ProcessTable},
    tenants::{self, TenantList},
};

const CONNECT_TIMEOUT: RangeInclusive<Duration> = SECOND..=Duration::from_mins(5);
const IDLE_TIMEOUT: RangeInclusive<Duration> = SECOND..=Duration::from_hours(24);
const KEEP_IDLE: RangeInclusive<Duration> = SECOND..=Duration::from_hours(24);
const MESSAGE_BYTES: RangeInclusive<usize> = 1024..=64 * 1024 * 1024;
const OF_TENANTS: &str = "belongs to a server with `per = \"tenant\"`";
const COUNT: RangeInclusive<usize> = 1..=1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpTable {
    command: Option<Spanned<Vec<String>>>,
    cwd: Option<Spanned<PathBuf>>,
    #[serde(default)]
    env_from: Vec<Spanned<String>>,
    url: Option<Spanned<String>>,
    #[serde(default)]
    headers_env: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    effects: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    env_file: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    headers_file: BTreeMap<Spanned<String>, Spanned<String>>,
    tools: Option<Vec<String>>,
    tell_caller: Option<bool>,
    tenants: Option<TenantList>,
    #[serde(default)]
    agents: Vec<String>,
    #[serde(default)]
    per: PerWord,
    max_connections: Option<Spanned<usize>>,
    keep_idle: Option<Spanned<String>>,
    connect_timeout: Option<Spanned<String>>,
    idle_timeout: Option<Spanned<String>>,
    max_message_bytes: Option<Spanned<usize>>,
    max_tools: Option<Spanned<usize>>,
    max_concurrent_calls: Option<Spanned<usize>>,
    process: Option<Spanned<ProcessTable>>,
    oauth: Option<Spanned<OAuthTable>>,
}

pub(crate) fn check(
    tables: BTreeMap<Spanned<String>, McpTable>,
    processes: &ProcessRules,
    check: &mut Checker<'_>,
    names: &mut Names,
) -> Vec<ServerOptions> {
    let mut servers = Vec::new();
    for (name, table) in tables {
        check_name(check, &name);
        names.servers.insert(name.get_ref().clone());
        servers.extend(table.check(&name, processes, check));
    }
    servers
}

fn check_name(check: &mut Checker<'_>, name: &Spanned<String>) {
    if !tool_names::is_valid_source(name.get_ref()) {
        check.wrong(
            name,
            "the name of an MCP server has 1 to 30 letters, digits, `-` or single `_`, none of them at an end",
        );
    }
    if name.get_ref() == skills::SOURCE {
        check.wrong(
            name,
            "an MCP server cannot be called `skill`, because the names of skill tools begin with `skill`",
        );
    }
}

impl McpTable {
    fn check(
        self,
        name: &Spanned<String>,
        processes: &ProcessRules,
        check: &mut Checker<'_>,
    ) -> Option<ServerOptions> {
        let location = self.location(name, processes, check)?;
        let default = ServerOptions::new(name.get_ref(), location);
        Some(ServerOptions {
            per_tenant: self.per_tenant(check),
            tell_caller: self.tell_caller.unwrap_or(default.tell_caller),
            tenants: tenants::checked(check, self.tenants.as_ref()),
            agents: self.agents,
            effects: checked_effects(self.effects, check),
            only: self.tools,
            connect_timeout: check.duration(
                "connect_timeout",
                &self.connect_timeout,
                default.connect_timeout,
                CONNECT_TIMEOUT,
            ),
            idle_timeout: check.optional_duration("idle_timeout", &self.idle_timeout, IDLE_TIMEOUT),
            max_message_bytes: check.number(
                "max_message_bytes",
                &self.max_message_bytes,
                default.max_message_bytes,
                MESSAGE_BYTES,
            ),
            max_tools: check.number("max_tools", &self.max_tools, default.max_tools, COUNT),
            max_concurrent_calls: check.number(
                "max_concurrent_calls",
                &self.max_concurrent_calls,
                default.max_concurrent_calls,
                COUNT,
            ),
            ..default
        })
    }

    /// Returns the limits of connections per tenant, or `None` when all tenants share a connection.
    fn per_tenant(&self, check: &mut Checker<'_>) -> Option<PerTenant> {
        let default = PerTenant::default();
        let limits = PerTenant {
            max_connections: check.number(
                "max_connections",
                &self.max_connections,
                default.max_connections,
                COUNT,
            ),
            idle: check.duration("keep_idle", &self.keep_idle, default.idle, KEEP_IDLE),
        };
        if self.per == PerWord::Tenant {
            return Some(limits);
        }
        if let Some(number) = &self.max_connections {
            check.wrong(number, format!("`max_connections` {OF_TENANTS}"));
        }
        if let Some(duration) = &self.keep_idle {
            check.wrong(duration, format!("`keep_idle` {OF_TENANTS}"));
        }
        None
    }

    /// Returns the values that are stored in files.
    fn files(
        &self,
        key: &str,
        table: &BTreeMap<Spanned<String>, Spanned<String>>,
        check: &mut Checker<'_>,
    ) -> Vec<(String, SecretFile)> {
        let mut files = Vec::new();
        for (name, path) in table {
            files.push((name.get_ref().clone(), self.per.file(key, path, check)));
        }
        files
    }

    /// Returns the server's command or URL.
    fn location(
        &self,
        name: &Spanned<String>,
        processes: &ProcessRules,
        check: &mut Checker<'_>,
    ) -> Option<ServerLocation> {
        match (&self.command, &self.url) {
            (Some(command), None) => Some(self.program(command, processes, check)),
            (None, Some(url)) => Some(self.endpoint(url, check)),
            _ => {
                check.wrong(name, "an MCP server has either a `command` or a `url`");
                None
            }
        }
    }

    fn program(
        &self,
        command: &Spanned<Vec<String>>,
        processes: &ProcessRules,
        check: &mut Checker<'_>,
    ) -> ServerLocation {
        if command.get_ref().first().is_none_or(String::is_empty) {
            check.wrong(
                command,
                "`command` is a program and its arguments, like [\"npx\", \"-y\", \"a-server\"]",
            );
        }
        for header in self.headers_env.keys() {
            check.wrong(header, "`headers_env` belongs to a server with a `url`");
        }
        for header in self.headers_file.keys() {
            check.wrong(header, "`headers_file` belongs to a server with a `url`");
        }
        if let Some(table) = &self.oauth {
            check.wrong(table, "`oauth` belongs to a server with a `url`");
        }
        let rules = self
            .process
            .as_ref()
            .map_or_else(ProcessRules::default, |table| table.get_ref().check(check));
        ServerLocation::Command {
            command: command.get_ref().clone(),
            directory: self.cwd.as_ref().map(|path| path.get_ref().clone()),
            environment: self
                .env_from
                .iter()
                .filter_map(|variable| inherited(variable, check))
                .collect(),
            environment_files: self.files("env_file", &self.env_file, check),
            launch: Launch::confined(rules.over(processes).policy()),
        }
    }

    fn endpoint(&self, url: &Spanned<String>, check: &mut Checker<'_>) -> ServerLocation {
        check.http_url("url", url, "https://example.com/mcp");
        if let Some(directory) = &self.cwd {
            check.wrong(directory, "`cwd` belongs to a server with a `command`");
        }
        for variable in &self.env_from {
            check.wrong(variable, "`env_from` belongs to a server with a `command`");
        }
        for variable in self.env_file.keys() {
            check.wrong(variable, "`env_file` belongs to a server with a `command`");
        }
        if let Some(table) = &self.process {
            check.wrong(table, "`process` belongs to a server with a `command`");
        }
        let header = |(name, variable): (&Spanned<String>, _)| {
            let value = check.secret("headers_env", variable)?;
            Some((name.get_ref().clone(), value))
        };
        ServerLocation::Url {
            url: url.get_ref().clone(),
            headers: self.headers_env.iter().filter_map(header).collect(),
            header_files: self.files("headers_file", &self.headers_file, check),
            oauth: self.oauth(url, check).map(Box::new),
        }
    }

    /// Returns how the worker requests tokens.
    fn oauth(&self, url: &Spanned<String>, check: &mut Checker<'_>) -> Option<OAuthOptions> {
        let table = self.oauth.as_ref()?;
        let names = self.headers_env.keys().chain(self.headers_file.keys());
        for name in names.filter(|name| name.get_ref().eq_ignore_ascii_case("authorization")) {
            check.wrong(
                name,
                "a server has `oauth` or a header `authorization`, and not both",
            );
        }
        table.get_ref().check(table, url, self.per, check)
    }
}

/// Returns the name and the value of a variable that the server inherits unchanged. The name may have lower-case
/// letters.
fn inherited(variable: &Spanned<String>, check: &mut Checker<'_>) -> Option<(String, String)> {
    let name = variable.get_ref();
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_fit) {
        check.wrong(
            variable,
            "`env_from` holds names of environment variables, like GITHUB_TOKEN, not values",
        );
        return None;
    }
    let value = check.required_variable("env_from", variable)?;
    Some((name.clone(), value))
}

fn checked_effects(
    effects: BTreeMap<String, Spanned<String>>,
    check: &mut Checker<'_>,
) -> BTreeMap<String, Effect> {
    let mut read = BTreeMap::new();
    for (tool, word) in effects {
        let known = [Effect::Read, Effect::Idempotent, Effect::Once]
            .into_iter()
            .find(|effect| effect.as_str() == word.get_ref());
        match known {
            Some(effect) => drop(read.insert(tool, effect)),
            None => check.wrong(&word, "an effect is \"read\", \"idempotent\" or \"once\""),
        }
    }
    read
}
