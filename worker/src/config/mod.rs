//! `everturn.toml`: read, checked as a whole, and turned into what the roles need.
//!
//! - `delegates`: which agents an agent may start, and the limits of their tree
//! - `file`: the file's tables, as written
//! - `mcp`: the tables of MCP servers, and their check
//! - `check`: from tables to definitions, collecting everything that is wrong
//! - `auth`: both, for `[auth]`
//! - `http_tools`: the same for endpoints as tools
//! - `skills`: `[skills]`, and the skills that agents name
//! - `outside`: the same for client tools, and approval policies
//! - `remote`: the same for tools that other workers run
//! - `gateway`: the table `[gateway]`, as written and as checked
//!
//! Keys never stand in the file; it names the environment variables that hold them.

mod auth;
mod check;
mod delegates;
mod file;
mod gateway;
mod http_tools;
mod mcp;
mod outside;
mod remote;
mod skills;
#[cfg(test)]
mod tests;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use everturn_activities::{
    egress::EgressPolicy,
    model::Providers,
    tools::{ClientTool, RemoteTool, http::HttpToolDefinition, mcp::ServerOptions, skills::Skills},
};
use everturn_gateway::{AuthConfig, TenantLimits};
use everturn_proto::{
    limits::{MAX_MESSAGE_BYTES, MAX_QUEUED_MESSAGES},
    turn::AgentDefinition,
};

pub use gateway::Gateway;

/// Name of the provider that stands for the demo model.
pub const DEMO_PROVIDER: &str = "demo";
/// How long a tool may take when nothing is said of it.
pub const DEFAULT_TOOL_TIMEOUT: Duration = Duration::from_mins(5);
/// The file that is read when none is named.
const DEFAULT_FILE: &str = "everturn.toml";

/// What is configured.
#[derive(Debug, Clone)]
pub struct Config {
    /// Agents, `default` always among them.
    pub agents: Vec<AgentDefinition>,
    /// Providers of models, without the demo model.
    pub providers: Providers,
    /// Endpoints that are tools; none for a gateway.
    pub http_tools: Vec<HttpToolDefinition>,
    /// Tools that run at the client; none for a gateway.
    pub client_tools: Vec<ClientTool>,
    /// Tools that other workers run; none for a gateway.
    pub remote_tools: Vec<RemoteTool>,
    /// Where tools may connect to.
    pub egress: EgressPolicy,
    /// MCP servers, for workers.
    pub mcp: Vec<ServerOptions>,
    /// Skills; none for a gateway.
    pub skills: Skills,
    /// Limits of the gateway.
    pub limits: Limits,
    /// Limits of a worker.
    pub worker: WorkerLimits,
    /// Who may call the gateway.
    pub auth: AuthConfig,
    /// Streams and the way a gateway stops.
    pub gateway: Gateway,
}

/// Limits of the gateway.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message. Default and maximum: `limits::MAX_MESSAGE_BYTES`.
    pub message_bytes: usize,
    /// Messages that may wait in one conversation. Default and maximum: `limits::MAX_QUEUED_MESSAGES`.
    pub queued_messages: u32,
    /// Bytes of a request body. Default 0: as many as the largest message needs.
    pub body_bytes: usize,
    /// Of each tenant.
    pub tenant: TenantLimits,
}

/// Limits of a worker.
#[derive(Debug, Clone)]
pub struct WorkerLimits {
    /// LLM calls and tools at once. Default 200: they wait for others most of the time.
    pub max_concurrent_activities: usize,
    /// Workflow tasks at once. Default 100: each takes milliseconds.
    pub max_concurrent_workflow_tasks: usize,
    /// Turns kept in memory between tasks. Default 1000: some tens of KB each; one more is replayed from history.
    pub max_cached_workflows: usize,
    /// How long what is in flight may take to end after SIGTERM. Default 20 s: below Kubernetes' 30 s.
    pub graceful_shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let queued_messages = u32::try_from(MAX_QUEUED_MESSAGES).unwrap_or(u32::MAX);
        Self {
            message_bytes: MAX_MESSAGE_BYTES,
            queued_messages,
            body_bytes: 0,
            tenant: TenantLimits::default(),
        }
    }
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self {
            max_concurrent_activities: 200,
            max_concurrent_workflow_tasks: 100,
            max_cached_workflows: 1000,
            graceful_shutdown: Duration::from_secs(20),
        }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was named cannot be read.
    #[error("cannot read the configuration {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in it is wrong; all of it is listed.
    #[error("{}", Listed(.0))]
    Wrong(Vec<Problem>),
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `file:line:column`.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

struct Listed<'a>(&'a [Problem]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration cannot be used")?;
        for problem in self.0 {
            write!(f, "\n  {}: {}", problem.place, problem.message)?;
        }
        Ok(())
    }
}

impl Config {
    /// Reads `path`; without one, ./everturn.toml when it exists, else built-in defaults. `tools` are the names an
    /// agent may use besides those of the file.
    pub fn load(path: Option<&Path>, tools: &[String]) -> Result<Self, ConfigError> {
        Self::load_with(path, Some(tools), &|name| {
            std::env::var(name).ok().filter(|value| !value.is_empty())
        })
    }

    /// The same for a gateway, which calls no model and runs no tool: keys need not be there, and which tools there are
    /// is the workers' matter.
    pub fn load_for_gateway(path: Option<&Path>) -> Result<Self, ConfigError> {
        Self::load_with(path, None, &|_| Some(String::new()))
    }

    fn load_with(
        path: Option<&Path>,
        tools: Option<&[String]>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let (path, is_named) = path.map_or((Path::new(DEFAULT_FILE), false), |path| (path, true));
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &path.display().to_string(), tools, environment),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => {
                Self::parse("", DEFAULT_FILE, tools, environment)
            }
            Err(source) => Err(ConfigError::Unreadable {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Reads the text of a file. `tools` are the names an agent may use besides those of the file, any when `None`;
    /// `environment` gives the value of a variable.
    pub fn parse(
        text: &str,
        file_name: &str,
        tools: Option<&[String]>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let file: file::File = toml::from_str(text).map_err(|error| {
            let place = check::place(file_name, text, error.span().map_or(0, |span| span.start));
            ConfigError::Wrong(vec![Problem {
                place,
                message: error.message().to_owned(),
            }])
        })?;
        check::Checker::new(text, file_name, tools, environment).config(file)
    }

    /// True when an agent is to be answered by the demo model: no provider's key is configured.
    pub fn needs_demo_model(&self) -> bool {
        !self.providers.contains_key(DEMO_PROVIDER)
            && self
                .agents
                .iter()
                .any(|agent| agent.provider == DEMO_PROVIDER)
    }
}
