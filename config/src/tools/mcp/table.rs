//! `[mcp.NAME]`: the table of a server.

use std::{collections::BTreeMap, path::PathBuf};

use everturn_supervisor::launch::Launch;
use everturn_tools::{
    Effect,
    mcp::{
        ALL_TOOLS, OAuthOptions, PerTenant, Questions, SecretFile, ServerLocation, ServerOptions,
    },
};
use serde::Deserialize;
use toml::Spanned;

use super::{oauth::OAuthTable, per::PerWord, questions::QuestionsWord};
use crate::{
    checker::Checker,
    forms::{DAY, Form, HttpUrl, MINUTE, Number, OneOf, SECOND, Time, Variable, Written},
    processes::{ProcessRules, ProcessTable},
    tenants::{self, TenantList},
    tools::{
        description::WrittenTitle,
        probe::{Asked, check_probe},
    },
};

type MessageBytes = Number<1024, { 64 << 20 }, usize>;
type Count = Number<1, 1000, usize>;
const OF_TENANTS: &str = "belongs to a server with `per = \"tenant\"`, or with the grant `authorization_code` in `oauth`";
const OF_PROGRAMS: &str = "belongs to a server with a `command`";
const OF_URLS: &str = "belongs to a server with a `url`";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct McpTable {
    pub(super) command: Option<Spanned<Vec<String>>>,
    pub(super) cwd: Option<Spanned<PathBuf>>,
    pub(super) env: BTreeMap<Spanned<String>, String>,
    env_from: Vec<Written<Inherited>>,
    pub(super) url: Option<Written<HttpUrl>>,
    pub(super) headers: BTreeMap<Spanned<String>, String>,
    headers_env: BTreeMap<Spanned<String>, Written<Variable>>,
    effects: BTreeMap<String, Written<OneOf<Effect>>>,
    titles: BTreeMap<String, WrittenTitle>,
    probes: BTreeMap<String, Spanned<String>>,
    env_file: BTreeMap<Spanned<String>, Spanned<String>>,
    headers_file: BTreeMap<Spanned<String>, Spanned<String>>,
    tools: Option<Vec<String>>,
    instructions: Option<bool>,
    tell_caller: Option<bool>,
    tenants: Option<TenantList>,
    agents: Vec<String>,
    per: Option<Spanned<PerWord>>,
    max_connections: Option<Written<Count>>,
    keep_idle: Option<Written<Time<SECOND, DAY>>>,
    connect_timeout: Option<Written<Time<SECOND, { 5 * MINUTE }>>>,
    idle_timeout: Option<Written<Time<SECOND, DAY>>>,
    max_message_bytes: Option<Written<MessageBytes>>,
    max_tools: Option<Written<Count>>,
    max_concurrent_calls: Option<Written<Count>>,
    questions: Option<QuestionsWord>,
    pub(super) process: Option<Spanned<ProcessTable>>,
    oauth: Option<Spanned<OAuthTable>>,
    /// The reason why an imported server cannot be used.
    #[serde(skip)]
    pub(super) unusable: Option<String>,
}

impl McpTable {
    /// Returns the options of the server, or `None` after a mistake.
    pub(super) fn check(
        self,
        name: &Spanned<String>,
        processes: &ProcessRules,
        check: &mut Checker<'_>,
    ) -> Option<ServerOptions> {
        let (location, mut lacking) =
            check.without_variables(|check| self.location(name, processes, check));
        lacking.extend(self.unusable.clone());
        let location = match location? {
            _ if check.is_of_worker() && !lacking.is_empty() => ServerLocation::Unusable {
                reason: lacking.join("; "),
            },
            location => location,
        };
        let default = ServerOptions::new(name.get_ref(), location);
        let effects = self.effects.iter();
        let effects =
            effects.filter_map(|(tool, effect)| Some((tool.clone(), check.value(effect)?)));
        let effects: BTreeMap<_, _> = effects.collect();
        let probes = self.probes(name, &effects, check);
        let titles = self.titles.iter();
        let titles = titles.filter_map(|(tool, title)| Some((tool.clone(), check.value(title)?)));
        Some(ServerOptions {
            effects,
            titles: titles.collect(),
            probes,
            per_tenant: self.per_tenant(check),
            instructions: self.instructions.unwrap_or(default.instructions),
            tell_caller: self.tell_caller.unwrap_or(default.tell_caller),
            tenants: tenants::checked(check, self.tenants.as_ref()),
            agents: self.agents,
            only: self.tools,
            connect_timeout: check.value_or(&self.connect_timeout, default.connect_timeout),
            idle_timeout: check.value(&self.idle_timeout),
            max_message_bytes: check.value_or(&self.max_message_bytes, default.max_message_bytes),
            max_tools: check.value_or(&self.max_tools, default.max_tools),
            max_concurrent_calls: check
                .value_or(&self.max_concurrent_calls, default.max_concurrent_calls),
            questions: self.questions.map_or(default.questions, Questions::from),
            ..default
        })
    }

    /// Returns who shares a connection.
    fn per(&self) -> PerWord {
        let oauth = self.oauth.as_ref();
        if oauth.is_some_and(|oauth| oauth.get_ref().needs_consent()) {
            return PerWord::Person;
        }
        self.per
            .as_ref()
            .map_or(PerWord::Worker, |per| *per.get_ref())
    }

    /// Returns the probes by tool. Only the server knows an effect without an entry, and which tools it has.
    fn probes(
        &self,
        server: &Spanned<String>,
        effects: &BTreeMap<String, Effect>,
        check: &mut Checker<'_>,
    ) -> BTreeMap<String, String> {
        let effect_of = |tool: &String| effects.get(tool).or_else(|| effects.get(ALL_TOOLS));
        let has = |tool: &String| {
            let only = self.tools.as_ref();
            only.is_none_or(|only| only.contains(tool))
        };
        let source = format!("`tools` of `[mcp.{}]`", server.get_ref());
        let mut probes = BTreeMap::new();
        for (tool, probe) in &self.probes {
            let name = probe.get_ref();
            let asked = has(name).then(|| Asked {
                effect: effect_of(name),
                has_probe: self.probes.contains_key(name),
            });
            let effect = effect_of(tool).unwrap_or(&Effect::Once);
            check_probe(check, probe, &source, effect, asked);
            probes.insert(tool.clone(), name.clone());
        }
        probes
    }

    /// Returns the limits of connections per tenant or per person, or `None` when all tenants share a connection.
    fn per_tenant(&self, check: &mut Checker<'_>) -> Option<PerTenant> {
        let default = PerTenant::default();
        if let (Some(per), PerWord::Person) = (&self.per, self.per()) {
            check.wrong(
                per,
                "`per` does not belong to a server with the grant `authorization_code`: each person has a connection",
            );
        }
        let limits = PerTenant {
            max_connections: check.value_or(&self.max_connections, default.max_connections),
            idle: check.value_or(&self.keep_idle, default.idle),
        };
        if self.per() != PerWord::Worker {
            return Some(limits);
        }
        let number = self.max_connections.iter().map(|number| &number.at);
        misplaced("max_connections", number, OF_TENANTS, check);
        let duration = self.keep_idle.iter().map(|duration| &duration.at);
        misplaced("keep_idle", duration, OF_TENANTS, check);
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
            files.push((name.get_ref().clone(), self.per().file(key, path, check)));
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
            (Some(command), None) => Some(self.program(name, command, processes, check)),
            (None, Some(url)) => Some(self.endpoint(url, check)),
            _ => {
                check.wrong(name, "an MCP server has either a `command` or a `url`");
                None
            }
        }
    }

    fn program(
        &self,
        name: &Spanned<String>,
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
        misplaced("headers", self.headers.keys(), OF_URLS, check);
        misplaced("headers_env", self.headers_env.keys(), OF_URLS, check);
        misplaced("headers_file", self.headers_file.keys(), OF_URLS, check);
        misplaced("oauth", &self.oauth, OF_URLS, check);
        let rules = self
            .process
            .as_ref()
            .map_or_else(ProcessRules::default, |table| table.get_ref().check(check))
            .over(processes);
        if let Some(lack) = rules.lacks(name.get_ref()) {
            check.wrong(name, lack);
        }
        let environment = self.env_from.iter().filter_map(|variable| {
            let name = check.value(variable)?;
            let value = check.required_variable("env_from", &variable.at, &name)?;
            Some((name, value))
        });
        let environment = written(&self.env).chain(environment);
        ServerLocation::Command {
            command: command.get_ref().clone(),
            directory: self.cwd.as_ref().map(|path| path.get_ref().clone()),
            environment: environment.collect(),
            environment_files: self.files("env_file", &self.env_file, check),
            launch: Launch::confined(rules.policy()),
        }
    }

    fn endpoint(&self, url: &Written<HttpUrl>, check: &mut Checker<'_>) -> ServerLocation {
        misplaced("cwd", &self.cwd, OF_PROGRAMS, check);
        let variables = self.env_from.iter().map(|variable| &variable.at);
        misplaced("env_from", variables, OF_PROGRAMS, check);
        misplaced("env", self.env.keys(), OF_PROGRAMS, check);
        misplaced("env_file", self.env_file.keys(), OF_PROGRAMS, check);
        misplaced("process", &self.process, OF_PROGRAMS, check);
        let oauth = self.oauth(url, check).map(Box::new);
        ServerLocation::Url {
            url: check.value(url).map(|url| url.text).unwrap_or_default(),
            headers: written(&self.headers)
                .chain(check.secret_headers::<Vec<_>>(&self.headers_env))
                .collect(),
            header_files: self.files("headers_file", &self.headers_file, check),
            oauth,
        }
    }

    /// Returns how the worker requests tokens.
    fn oauth(&self, url: &Written<HttpUrl>, check: &mut Checker<'_>) -> Option<OAuthOptions> {
        let table = self.oauth.as_ref()?;
        let names = self.headers_env.keys().chain(self.headers_file.keys());
        let names = names.chain(self.headers.keys());
        for name in names.filter(|name| name.get_ref().eq_ignore_ascii_case("authorization")) {
            check.wrong(
                name,
                "a server has `oauth` or a header `authorization`, and not both",
            );
        }
        table.get_ref().check(table, url, self.per(), check)
    }
}

/// Returns the names and values of a table.
fn written(values: &BTreeMap<Spanned<String>, String>) -> impl Iterator<Item = (String, String)> {
    values
        .iter()
        .map(|(name, value)| (name.get_ref().clone(), value.clone()))
}

/// Notes keys that belong to another kind of server.
fn misplaced<'v, T: 'v>(
    key: &str,
    written: impl IntoIterator<Item = &'v Spanned<T>>,
    owner: &str,
    check: &mut Checker<'_>,
) {
    for at in written {
        check.wrong(at, format!("`{key}` {owner}"));
    }
}

/// The name of a variable that the server inherits unchanged. The name may have lower-case letters.
struct Inherited;

impl Form for Inherited {
    type Toml = String;
    type Value = String;

    fn read(name: String) -> Result<String, String> {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !name.is_empty() && name.bytes().all(is_fit) {
            return Ok(name);
        }
        Err("holds names of environment variables, like GITHUB_TOKEN, not values".to_owned())
    }
}
