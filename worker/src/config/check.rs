//! From tables to definitions. Everything that is wrong is collected, so that a file is mended in one go.

use std::{collections::BTreeMap, ops::RangeInclusive, time::Duration};

use everturn_activities::{
    model::{Provider, ProviderKind, Providers},
    tools::{http::HttpToolDefinition, names, skills::Skills},
};
use everturn_gateway::TenantLimits;
use everturn_proto::{
    limits::{MAX_MESSAGE_BYTES, MAX_QUEUED_MESSAGES, MAX_TOOL_CALLS},
    turn::{AgentDefinition, AgentTool},
    words::{DEFAULT_AGENT, DELEGATE_TOOL, tool_kind},
};
use toml::Spanned;

use super::{
    Config, ConfigError, DEFAULT_TOOL_TIMEOUT, DEMO_PROVIDER, Limits, Problem, WorkerLimits, file,
    http_tools, outside::DEFAULT_CLIENT_TIMEOUT, remote::RemoteCall,
};

const DEFAULT_MAX_STEPS: u32 = 20;
/// A worker has 200 slots for all its turns, and whom the tools ask has limits, too.
const DEFAULT_MAX_PARALLEL_TOOLS: u32 = 16;
const DEFAULT_LLM_TIMEOUT: Duration = Duration::from_mins(1);
const DEFAULT_CONTEXT_MESSAGES: u32 = 200;
const DEFAULT_TOOLS: [&str; 3] = ["calculate", "current_time", "work_plan"];
const DEFAULT_INSTRUCTIONS: &str = "You are a helpful assistant. Use tools rather than guessing.";

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_hours(1);

pub(super) struct Checker<'a> {
    text: &'a str,
    file_name: &'a str,
    /// The names of all tools; `None` when any name will do.
    tools: Option<Vec<String>>,
    /// Names of the MCP servers. What tools they have is known to them only.
    servers: Vec<String>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// Names of the client tools that the file describes.
    pub(super) client_tools: Vec<String>,
    /// How the remote tools that the file describes are called, by name.
    pub(super) remote_tools: BTreeMap<String, RemoteCall>,
    /// Names of the agents in the file.
    pub(super) agents: Vec<String>,
    problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(
        text: &'a str,
        file_name: &'a str,
        tools: Option<&[String]>,
        environment: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let tools = tools.map(<[String]>::to_vec);
        let (servers, client_tools, agents) = (Vec::new(), Vec::new(), Vec::new());
        let (remote_tools, problems) = (BTreeMap::new(), Vec::new());
        Self {
            text,
            file_name,
            tools,
            servers,
            environment,
            client_tools,
            remote_tools,
            agents,
            problems,
        }
    }

    pub(super) fn config(mut self, file: file::File) -> Result<Config, ConfigError> {
        let mut providers = self.providers(file.providers);
        let http_tools = self.http_tools(file.tools);
        let client_tools = self.client_tools(file.client_tools);
        let remote_tools = self.remote_tools(file.remote_tools);
        let egress = self.egress(&file.egress);
        self.servers = file.mcp.keys().map(|name| name.get_ref().clone()).collect();
        let mcp = self.mcp(file.mcp);
        self.agents = file
            .agents
            .keys()
            .map(|name| name.get_ref().clone())
            .collect();
        let skills = self.tools.is_some().then(|| self.skills(&file.skills));
        let agents = file.agents.into_iter();
        let mut agents: Vec<_> = agents
            .map(|(name, agent)| self.agent(&name, agent, &providers, skills.as_ref()))
            .collect();
        if !agents.iter().any(|agent| agent.name == DEFAULT_AGENT) {
            let is_configured = !providers.is_empty();
            let agent = self.default_agent(&mut providers);
            // The demo model is for a start without configuration, not for a part that was forgotten.
            if is_configured && agent.provider == DEMO_PROVIDER {
                let message = "there is no [agents.default], the agent of conversations that name none; add it";
                self.problems.push(Problem {
                    place: place(self.file_name, self.text, 0),
                    message: message.to_owned(),
                });
            }
            agents.push(agent);
        }
        let limits = self.limits(&file.limits);
        let worker = self.worker(&file.worker);
        let auth = self.auth(file.auth);
        let gateway = file.gateway.check(&mut self);
        if self.problems.is_empty() {
            let skills = skills.unwrap_or_default();
            Ok(Config {
                agents,
                providers,
                http_tools,
                client_tools,
                remote_tools,
                egress,
                mcp,
                skills,
                limits,
                worker,
                auth,
                gateway,
            })
        } else {
            Err(ConfigError::Wrong(self.problems))
        }
    }

    fn providers(&mut self, tables: BTreeMap<Spanned<String>, file::Provider>) -> Providers {
        let mut providers = Providers::new();
        for (name, table) in tables {
            let base_url = table.base_url.as_ref().map(|url| self.base_url(url));
            let api_key = table
                .api_key_env
                .as_ref()
                .map(|variable| self.secret("api_key_env", variable))
                .unwrap_or_default();
            let provider = Provider {
                kind: table.kind,
                base_url,
                api_key,
            };
            providers.insert(name.into_inner(), provider);
        }
        providers
    }

    fn base_url(&mut self, url: &Spanned<String>) -> String {
        let is_http = url
            .get_ref()
            .parse::<url::Url>()
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            self.wrong(
                url,
                "`base_url` must be an http or https URL, like \"https://api.example.com/v1/\"",
            );
        }
        format!("{}/", url.get_ref().trim_end_matches('/'))
    }

    /// The value of the variable that `key` names.
    pub(super) fn secret(&mut self, key: &str, variable: &Spanned<String>) -> String {
        // Whoever writes the secret itself here must not find it in a log.
        if !is_variable(variable.get_ref()) {
            let message = format!(
                "`{key}` is the name of an environment variable, like OPENAI_API_KEY, not a key"
            );
            self.wrong(variable, &message);
            return String::new();
        }
        let value = (self.environment)(variable.get_ref());
        if value.is_none() {
            let message = format!(
                "the environment variable {} named by `{key}` is not set",
                variable.get_ref()
            );
            self.wrong(variable, &message);
        }
        value.unwrap_or_default()
    }

    /// Endpoints as tools.
    fn http_tools(
        &mut self,
        tables: BTreeMap<Spanned<String>, http_tools::HttpTool>,
    ) -> Vec<HttpToolDefinition> {
        let mut definitions = Vec::new();
        for (name, table) in tables {
            if self.add_tool(&name) {
                definitions.extend(self.http_tool(&name, &table));
            }
        }
        definitions
    }

    /// From here on agents may name the tool. False where it does not matter which tools there are.
    pub(super) fn add_tool(&mut self, name: &Spanned<String>) -> bool {
        match &mut self.tools {
            None => return false,
            Some(known) if known.contains(name.get_ref()) || name.get_ref() == DELEGATE_TOOL => {
                self.wrong(
                    name,
                    &format!("there already is a tool `{}`", name.get_ref()),
                );
            }
            Some(known) => known.push(name.get_ref().clone()),
        }
        true
    }

    pub(super) fn file_name(&self) -> &str {
        self.file_name
    }

    fn agent(
        &mut self,
        name: &Spanned<String>,
        table: file::Agent,
        providers: &Providers,
        skills: Option<&Skills>,
    ) -> AgentDefinition {
        if !everturn_proto::ids::is_valid(name.get_ref()) {
            self.wrong(
                name,
                "the name of an agent has 1 to 100 letters, digits or -_.: characters",
            );
        }
        let provider = table.provider.get_ref();
        if !providers.contains_key(provider) && provider != DEMO_PROVIDER {
            let known: Vec<_> = providers.keys().map(String::as_str).collect();
            let message = format!(
                "there is no provider `{provider}`; {}",
                known_names("providers", &known)
            );
            self.wrong(&table.provider, &message);
        }
        if table.model.get_ref().trim().is_empty() {
            self.wrong(&table.model, "`model` must not be empty");
        }
        let tool_timeout = self.duration(
            "tool_timeout",
            table.tool_timeout.as_ref(),
            DEFAULT_TOOL_TIMEOUT,
            SECOND..=24 * HOUR,
        );
        let limits = self.tree_limits(&table);
        let mut tools = self.tools(&table.tools, tool_timeout);
        tools.extend(self.agent_skills(&table.skills, skills, milliseconds(tool_timeout)));
        self.delegate(&mut tools, &table.tools, &table.delegates);
        AgentDefinition {
            name: name.get_ref().clone(),
            model: table.model.into_inner(),
            instructions: table.instructions,
            tools,
            max_steps: self.number(
                "max_steps",
                table.max_steps.as_ref(),
                DEFAULT_MAX_STEPS,
                1..=1000,
            ),
            max_parallel_tools: self.number(
                "max_parallel_tools",
                table.max_parallel_tools.as_ref(),
                DEFAULT_MAX_PARALLEL_TOOLS,
                1..=u32::try_from(MAX_TOOL_CALLS).unwrap_or(u32::MAX),
            ),
            llm_timeout_ms: milliseconds(self.duration(
                "llm_timeout",
                table.llm_timeout.as_ref(),
                DEFAULT_LLM_TIMEOUT,
                SECOND..=HOUR,
            )),
            max_output_tokens: table.max_output_tokens,
            max_context_messages: self.number(
                "max_context_messages",
                table.max_context_messages.as_ref(),
                DEFAULT_CONTEXT_MESSAGES,
                1..=10_000,
            ),
            provider: table.provider.into_inner(),
            description: table.description,
            ..limits
        }
    }

    fn tools(
        &mut self,
        tools: &[Spanned<toml::Value>],
        default_timeout: Duration,
    ) -> Vec<AgentTool> {
        let mut named: Vec<AgentTool> = Vec::new();
        for tool in tools {
            let Some(read) = self.tool(tool, default_timeout) else {
                continue;
            };
            // Providers refuse a request that offers a tool twice.
            if named.iter().any(|known| known.name == read.name) {
                self.wrong(
                    tool,
                    &format!("tool `{}` is named twice; keep one of them", read.name),
                );
            } else {
                named.push(read);
            }
        }
        named
    }

    fn tool(
        &mut self,
        tool: &Spanned<toml::Value>,
        default_timeout: Duration,
    ) -> Option<AgentTool> {
        let file::Tool {
            name,
            timeout,
            approval,
        } = file::Tool::read(tool.get_ref())
            .map_err(|message| self.wrong(tool, &message))
            .ok()?;
        if name == DELEGATE_TOOL {
            return Some(self.listed_delegate(tool, timeout.is_some(), approval));
        }
        if let Some(server) = names::source_of(&name) {
            self.of_server(tool, &name, server)?;
        } else if let Some(known) = self.tools.as_ref().filter(|known| !known.contains(&name)) {
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            let message = format!(
                "there is no tool `{name}`; {}",
                known_names("tools", &known)
            );
            self.wrong(tool, &message);
            return None;
        }
        let is_client = self.client_tools.contains(&name);
        let remote = self.remote_tools.get(&name).cloned();
        let timeout = timeout.map(|text| Spanned::new(tool.span(), text));
        let own_timeout = remote.as_ref().and_then(|remote| remote.timeout);
        let (default_timeout, longest) = if is_client {
            (DEFAULT_CLIENT_TIMEOUT, 31 * 24 * HOUR)
        } else {
            (own_timeout.unwrap_or(default_timeout), 24 * HOUR)
        };
        let timeout = self.duration(
            "timeout",
            timeout.as_ref(),
            default_timeout,
            SECOND..=longest,
        );
        let kind = match (is_client, &remote) {
            (true, _) => tool_kind::CLIENT,
            (false, Some(_)) => tool_kind::REMOTE,
            (false, None) => tool_kind::WORKER,
        };
        let (timeout_ms, remote) = (milliseconds(timeout), remote.map(|remote| remote.worker));
        Some(AgentTool {
            name,
            timeout_ms,
            approval,
            kind: kind.to_owned(),
            remote,
            ..AgentTool::default()
        })
    }

    /// A tool of an MCP server, or all of them.
    fn of_server(&mut self, tool: &Spanned<toml::Value>, name: &str, server: &str) -> Option<()> {
        if !self.servers.iter().any(|known| known == server) {
            let known: Vec<_> = self.servers.iter().map(String::as_str).collect();
            let message = format!(
                "there is no MCP server `{server}`; {}",
                known_names("[mcp.<name>] tables", &known)
            );
            self.wrong(tool, &message);
            return None;
        }
        if !names::is_listable(name) {
            self.wrong(
                tool,
                &format!(
                    "write `{server}__<tool>` for one tool of a server, `{server}__*` for all"
                ),
            );
            return None;
        }
        Some(())
    }

    /// The agent `default` of a file without one: on the first provider whose key there is, else the demo model.
    fn default_agent(&mut self, providers: &mut Providers) -> AgentDefinition {
        let usual = [
            (
                "openai",
                ProviderKind::OpenAi,
                "OPENAI_API_KEY",
                "gpt-5-mini",
            ),
            (
                "anthropic",
                ProviderKind::Anthropic,
                "ANTHROPIC_API_KEY",
                "claude-sonnet-4-5",
            ),
        ];
        let with_key = usual.into_iter().find_map(|(name, kind, variable, model)| {
            (self.environment)(variable).map(|api_key| {
                (
                    name,
                    model,
                    Provider {
                        kind,
                        base_url: None,
                        api_key,
                    },
                )
            })
        });
        let (provider, model) = match with_key {
            Some((name, model, provider)) => {
                providers.entry(name.to_owned()).or_insert(provider);
                (
                    name,
                    (self.environment)("EVERTURN_MODEL").unwrap_or_else(|| model.to_owned()),
                )
            }
            None => (DEMO_PROVIDER, DEMO_PROVIDER.to_owned()),
        };
        let tools = DEFAULT_TOOLS.into_iter().filter(|name| {
            self.tools
                .as_ref()
                .is_none_or(|known| known.iter().any(|known| known == name))
        });
        let timeout_ms = milliseconds(DEFAULT_TOOL_TIMEOUT);
        AgentDefinition {
            name: DEFAULT_AGENT.to_owned(),
            provider: provider.to_owned(),
            model,
            instructions: DEFAULT_INSTRUCTIONS.to_owned(),
            tools: tools
                .map(|name| AgentTool {
                    name: name.to_owned(),
                    timeout_ms,
                    ..AgentTool::default()
                })
                .collect(),
            max_steps: DEFAULT_MAX_STEPS,
            max_parallel_tools: DEFAULT_MAX_PARALLEL_TOOLS,
            llm_timeout_ms: milliseconds(DEFAULT_LLM_TIMEOUT),
            max_context_messages: DEFAULT_CONTEXT_MESSAGES,
            ..AgentDefinition::default()
        }
    }

    fn limits(&mut self, table: &file::Limits) -> Limits {
        let default = Limits::default();
        let max_bytes = u32::try_from(MAX_MESSAGE_BYTES).unwrap_or(u32::MAX);
        let max_queued = u32::try_from(MAX_QUEUED_MESSAGES).unwrap_or(u32::MAX);
        let bytes = self.number(
            "message_bytes",
            table.message_bytes.as_ref(),
            max_bytes,
            1..=max_bytes,
        );
        let body_bytes = self.number("body_bytes", table.body_bytes.as_ref(), 0, 0..=u32::MAX);
        Limits {
            message_bytes: usize::try_from(bytes).unwrap_or(MAX_MESSAGE_BYTES),
            body_bytes: usize::try_from(body_bytes).unwrap_or(usize::MAX),
            tenant: self.tenant_limits(table),
            queued_messages: self.number(
                "queued_messages",
                table.queued_messages.as_ref(),
                default.queued_messages,
                1..=max_queued,
            ),
        }
    }

    fn tenant_limits(&mut self, table: &file::Limits) -> TenantLimits {
        let default = TenantLimits::default();
        // 0 takes a limit away.
        let mut limit = |key, value: &Option<Spanned<u32>>, default, least| {
            self.number(key, value.as_ref(), default, least..=1_000_000)
        };
        TenantLimits {
            requests_per_second: limit(
                "requests_per_second",
                &table.requests_per_second,
                default.requests_per_second,
                0,
            ),
            request_burst: limit(
                "request_burst",
                &table.request_burst,
                default.request_burst,
                1,
            ),
            open_streams: limit("open_streams", &table.open_streams, default.open_streams, 0),
            concurrent_turns: limit(
                "concurrent_turns",
                &table.concurrent_turns,
                default.concurrent_turns,
                0,
            ),
        }
    }

    fn worker(&mut self, table: &file::Worker) -> WorkerLimits {
        let default = WorkerLimits::default();
        WorkerLimits {
            max_concurrent_activities: self.count(
                "max_concurrent_activities",
                table.max_concurrent_activities.as_ref(),
                default.max_concurrent_activities,
            ),
            max_concurrent_workflow_tasks: self.count(
                "max_concurrent_workflow_tasks",
                table.max_concurrent_workflow_tasks.as_ref(),
                default.max_concurrent_workflow_tasks,
            ),
            max_cached_workflows: self.count(
                "max_cached_workflows",
                table.max_cached_workflows.as_ref(),
                default.max_cached_workflows,
            ),
            graceful_shutdown: self.duration(
                "graceful_shutdown",
                table.graceful_shutdown.as_ref(),
                default.graceful_shutdown,
                SECOND..=HOUR,
            ),
        }
    }

    /// At least 2: the engine's pollers need one for the sticky queue and one for the other.
    fn count(&mut self, key: &str, value: Option<&Spanned<u32>>, default: usize) -> usize {
        value.map_or(default, |_| {
            usize::try_from(self.number(key, value, 0, 2..=100_000)).unwrap_or(default)
        })
    }

    pub(super) fn number(
        &mut self,
        key: &str,
        value: Option<&Spanned<u32>>,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> u32 {
        let Some(value) = value else { return default };
        if !range.contains(value.get_ref()) {
            let message = format!(
                "`{key}` must be from {} to {}, not {}",
                range.start(),
                range.end(),
                value.get_ref()
            );
            self.wrong(value, &message);
        }
        *value.get_ref()
    }

    pub(super) fn duration(
        &mut self,
        key: &str,
        value: Option<&Spanned<String>>,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        let Some(value) = value else { return default };
        match humantime::parse_duration(value.get_ref()) {
            Ok(duration) if range.contains(&duration) => duration,
            Ok(_) => {
                let (from, to) = (
                    humantime::format_duration(*range.start()),
                    humantime::format_duration(*range.end()),
                );
                self.wrong(
                    value,
                    &format!(
                        "`{key}` must be from {from} to {to}, not \"{}\"",
                        value.get_ref()
                    ),
                );
                default
            }
            Err(_) => {
                let message = format!(
                    "`{key}` must be a duration like \"30s\" or \"5m\", not \"{}\"",
                    value.get_ref()
                );
                self.wrong(value, &message);
                default
            }
        }
    }

    /// The value of an environment variable, unless it is empty.
    pub(super) fn environment(&self, name: &str) -> Option<String> {
        (self.environment)(name)
    }

    pub(super) fn wrong<T>(&mut self, at: &Spanned<T>, message: &str) {
        let place = place(self.file_name, self.text, at.span().start);
        self.problems.push(Problem {
            place,
            message: message.to_owned(),
        });
    }
}

/// The names of variables that people use; keys have lower-case letters or dashes in them.
pub(super) fn is_variable(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_fit)
}

/// `file:line:column` of a byte of the text, both from 1.
pub(super) fn place(file_name: &str, text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("{file_name}:{line}:{column}")
}

pub(super) fn known_names(kind: &str, names: &[&str]) -> String {
    if names.is_empty() {
        format!("no {kind} are configured")
    } else {
        format!("there are: {}", names.join(", "))
    }
}

/// Time-outs are at most a day, far below 2^32 ms.
pub(super) fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
