//! The command line: options, their environment variables, and logging.

use std::{env, io::IsTerminal, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use clap::{Args, Parser, Subcommand, builder::FalseyValueParser};
use everturn_gateway::config::{Scope, Scopes};
use everturn_proto::{
    ids,
    limits::MAX_ID_BYTES,
    words::{DEFAULT_AGENT, TASK_QUEUE},
};
use tracing_subscriber::EnvFilter;

/// Bytes of an owner's or a key's name: those of `sub` in a token.
const MAX_NAME_BYTES: usize = 255;

/// A durable runtime for LLM agents on Temporal.
#[derive(Debug, Parser)]
#[command(
    name = "everturn",
    version,
    about = "A durable runtime for LLM agents on Temporal",
    max_term_width = 110
)]
pub struct Cli {
    /// Options of every role.
    #[command(flatten)]
    pub common: Common,
    /// What to be.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every role.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Configuration file; without one, ./everturn.toml when it exists, else built-in defaults.
    #[arg(long, global = true, env = "EVERTURN_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Database: a SQLite file or a postgres:// URL; by default everturn.db in the data directory.
    #[arg(
        long,
        global = true,
        env = "EVERTURN_DATABASE",
        value_name = "FILE|URL",
        hide_env_values = true
    )]
    pub database: Option<String>,
    /// Redis for texts in the making, redis://host:port; without it they reach only gateways in the worker's process.
    #[arg(
        long,
        global = true,
        env = "EVERTURN_REDIS",
        value_name = "URL",
        hide_env_values = true
    )]
    pub redis: Option<String>,
    /// Where data is kept; by default `everturn` in the user's state directory.
    #[arg(long, global = true, env = "EVERTURN_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Task queue of the workers.
    #[arg(long, global = true, env = "EVERTURN_TASK_QUEUE", default_value = TASK_QUEUE, value_name = "NAME")]
    pub task_queue: String,
    /// Log filter, e.g. info or everturn=debug; by default warnings in dev and chat, else info.
    #[arg(long, global = true, env = "EVERTURN_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

/// What a process can be.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Everything in one process, with a Temporal dev server: for development and to try it out.
    Dev(DevOptions),
    /// A worker: runs turns. Start as many as you like. Temporal's address: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE.
    Worker(WorkerOptions),
    /// A gateway: REST and SSE. Start as many as you like. Temporal's address: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE.
    Gateway(GatewayOptions),
    /// Prepares database and Temporal: schema and search attributes. Safe to repeat, also from several places at once.
    Migrate,
    /// Removes conversations whose last event is older than this. Never one with a turn running or waiting.
    Retention(RetentionOptions),
    /// API keys for callers of the gateway.
    Keys(KeysOptions),
    /// Tools as an agent has them here: lists them, or runs one by hand. Needs neither Temporal nor a database.
    Tools(ToolsOptions),
    /// Talks to a running gateway from the terminal.
    Chat(ChatOptions),
}

/// Options of `dev`.
#[derive(Debug, Clone, Args)]
pub struct DevOptions {
    /// Address of the gateway.
    #[arg(long, env = "EVERTURN_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// See `gateway`.
    #[arg(long, env = "EVERTURN_INSECURE_NO_AUTH", value_parser = FalseyValueParser::new())]
    pub insecure_no_auth: bool,
    /// Key or token that --once and --sample send, where the configuration requires one.
    #[arg(
        long,
        env = "EVERTURN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// Port of Temporal on 127.0.0.1; a server that runs there is used, else one is started (its web UI on port + 1000).
    #[arg(long, default_value_t = 7233, value_name = "PORT")]
    pub temporal_port: u16,
    /// The `temporal` binary.
    #[arg(
        long,
        env = "EVERTURN_TEMPORAL_BIN",
        default_value = "temporal",
        value_name = "FILE"
    )]
    pub temporal_bin: PathBuf,
    /// Runs one turn with this message, prints it as it happens, and exits: 0 only when the turn completed.
    #[arg(long, value_name = "MESSAGE")]
    pub once: Option<String>,
    /// Runs one turn with this message at the start, then stays up.
    #[arg(long, value_name = "MESSAGE", conflicts_with = "once")]
    pub sample: Option<String>,
    /// Offers the test tools (test_once, test_read, test_idempotent) to agents that name them; effects are appended
    /// to this file.
    #[arg(long, env = "EVERTURN_TEST_TOOLS", value_name = "FILE", hide = true)]
    pub test_tools: Option<PathBuf>,
}

/// Options of `worker`.
#[derive(Debug, Clone, Args)]
pub struct WorkerOptions {
    /// See `dev`.
    #[arg(long, env = "EVERTURN_TEST_TOOLS", value_name = "FILE", hide = true)]
    pub test_tools: Option<PathBuf>,
}

/// Options of `gateway`.
#[derive(Debug, Clone, Args)]
pub struct GatewayOptions {
    /// Address to listen on. Other than loopback it needs `required = true` under [auth] in the configuration.
    #[arg(long, env = "EVERTURN_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Listens on any address without authentication: whoever reaches it can do everything.
    #[arg(long, env = "EVERTURN_INSECURE_NO_AUTH", value_parser = FalseyValueParser::new())]
    pub insecure_no_auth: bool,
}

/// Options of `keys`.
#[derive(Debug, Clone, Args)]
pub struct KeysOptions {
    /// What to do.
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// What `keys` does.
#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Makes a key and prints it, this once: only its hash is stored.
    Create(CreateKey),
    /// Lists keys, the oldest first; never their secrets.
    List(ListKeys),
    /// Revokes a key and ends its sessions. Gateways follow within seconds (`key_cache` of [auth]).
    Revoke(RevokeKey),
}

/// Options of `keys create`.
#[derive(Debug, Clone, Args)]
pub struct CreateKey {
    /// Tenant whose conversations the key is for.
    #[arg(long, value_name = "TENANT", value_parser = parse_tenant)]
    pub tenant: String,
    /// Only this owner's conversations; without it, every owner's of the tenant.
    #[arg(long, value_name = "OWNER", value_parser = parse_owner)]
    pub owner: Option<String>,
    /// What the key may do: read, write, approve.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', default_value = "read,write", value_parser = parse_scope)]
    pub scope: Vec<Scope>,
    /// How long it is valid, e.g. 90d; without it, until it is revoked.
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub expires: Option<Duration>,
    /// What it is for, shown in lists.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, value_parser = parse_name)]
    pub name: String,
}

/// Options of `keys list`.
#[derive(Debug, Clone, Args)]
pub struct ListKeys {
    /// Only this tenant's.
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `keys revoke`.
#[derive(Debug, Clone, Args)]
pub struct RevokeKey {
    /// The key's id, or the key itself.
    pub id: String,
}

/// Options of `tools`.
#[derive(Debug, Clone, Args)]
pub struct ToolsOptions {
    /// What to do.
    #[command(subcommand)]
    pub command: ToolsCommand,
    /// See `dev`.
    #[arg(long, env = "EVERTURN_TEST_TOOLS", value_name = "FILE", hide = true)]
    pub test_tools: Option<PathBuf>,
}

/// What to do with tools.
#[derive(Debug, Clone, Subcommand)]
pub enum ToolsCommand {
    /// Shows the tools that the model of an agent is offered. Asks MCP servers for theirs.
    List(ListTools),
    /// Runs a tool once and prints its result as JSON. Exit codes: 0 done, 1 the tool failed, 2 it was not called.
    Call(CallTool),
}

/// Options of `tools list`.
#[derive(Debug, Clone, Args)]
pub struct ListTools {
    /// The agent.
    #[arg(long, default_value = DEFAULT_AGENT, value_name = "NAME")]
    pub agent: String,
    /// Prints JSON, with the schemas.
    #[arg(long)]
    pub json: bool,
    /// Exits with 1 when something the agent lists is not there, like the tools of a server that is down.
    #[arg(long)]
    pub strict: bool,
}

/// Options of `tools call`.
#[derive(Debug, Clone, Args)]
pub struct CallTool {
    /// The tool, by the name that the model sees.
    pub name: String,
    /// Its input: a JSON object.
    #[arg(default_value = "{}", value_name = "JSON")]
    pub input: String,
    /// Only when this agent has the tool, and with the agent's time-out.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Does not ask before a tool is run that must not run twice.
    #[arg(long)]
    pub yes: bool,
}

/// Options of `retention`.
#[derive(Debug, Clone, Args)]
pub struct RetentionOptions {
    /// Age of a conversation's last event, e.g. 90d or 12h.
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub older_than: Duration,
    /// Only says what would be removed.
    #[arg(long)]
    pub dry_run: bool,
}

fn parse_age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it like 90d or 12h"))
}

fn parse_tenant(text: &str) -> Result<String, String> {
    let limits = format!("a tenant has 1 to {MAX_ID_BYTES} letters, digits, `-`, `_`, `.` or `:`");
    if ids::is_valid(text) {
        Ok(text.to_owned())
    } else {
        Err(limits)
    }
}

fn parse_owner(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("an owner must not be empty".to_owned())
    } else {
        parse_name(text)
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    let fits = text.len() <= MAX_NAME_BYTES && !text.contains(char::is_control);
    if fits {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "at most {MAX_NAME_BYTES} bytes, no control characters"
        ))
    }
}

fn parse_scope(word: &str) -> Result<Scope, String> {
    Scope::of(word).ok_or_else(|| format!("there are: {}", Scopes::all()))
}

/// Options of `chat`.
#[derive(Debug, Clone, Args)]
pub struct ChatOptions {
    /// URL of the gateway.
    #[arg(long, env = "EVERTURN_URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// Key or token, where the gateway requires one.
    #[arg(
        long,
        env = "EVERTURN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// Goes on with this conversation; without it a new one begins.
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
    /// Agent of a new conversation.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Approves every tool call that waits for a person. Without it you are asked, and with no terminal calls are denied.
    #[arg(long)]
    pub approve: bool,
    /// Sends one message, prints the answer and exits; without it, messages are read line by line.
    pub message: Option<String>,
}

impl Cli {
    /// Logs go to standard error; standard output is for what was asked for.
    pub fn start_logging(&self) -> anyhow::Result<()> {
        let is_terminal_role = matches!(
            self.command,
            Command::Dev(_) | Command::Chat(_) | Command::Keys(_) | Command::Tools(_)
        );
        // genai warns of every last chunk that has no text, which is every provider's; rmcp says every message it gets.
        let default = if is_terminal_role {
            "warn,genai=error"
        } else {
            "info,temporalio_sdk_core=warn,genai=error,rmcp=warn"
        };
        let filter = self.common.log.as_deref().unwrap_or(default);
        let filter = EnvFilter::try_new(filter)
            .with_context(|| format!("`{filter}` is not a log filter"))?;
        let is_terminal = std::io::stderr().is_terminal();
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(is_terminal)
            .with_writer(std::io::stderr)
            .init();
        Ok(())
    }
}

impl Common {
    /// Where data is kept.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| {
            let state = env::var_os("XDG_STATE_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute());
            let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
            state
                .or_else(home)
                .unwrap_or_else(env::temp_dir)
                .join("everturn")
        })
    }

    /// The database: a file or a URL.
    pub fn database(&self) -> String {
        self.database
            .clone()
            .unwrap_or_else(|| self.data_dir().join("everturn.db").display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
