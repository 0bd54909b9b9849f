//! Options of the commands that end by themselves: `codec`, `config`, `health`, `init`, `keys`, `replay` and `retention`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use everturn_gateway::config::{Scope, Scopes};
use everturn_proto::ids;
use reqwest::Url;

use super::serve::{ListenOptions, TestTools};

/// The longest name of an owner or a key, in bytes: the limit of `sub` in a token.
const MAX_NAME_BYTES: usize = 255;

/// Options of `codec`.
#[derive(Debug, Clone, Args)]
pub struct CodecOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub command: CodecCommand,
}

/// The subcommands of `codec`.
#[derive(Debug, Clone, Subcommand)]
pub enum CodecCommand {
    /// Makes a key and prints it as a line for the key ring of [codec]. The key is not stored.
    Key(NewCodecKey),
}

/// Options of `codec key`.
#[derive(Debug, Clone, Args)]
pub struct NewCodecKey {
    /// Id of the key. Every payload has the id in clear: letters, digits, dots, dashes and underscores. By default the
    /// date.
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

/// Options of `config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// The subcommands of `config`.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Reports mistakes in everturn.toml and the environment, with file, line and key, and shows the configuration.
    /// Connects to no server, except with --try to the MCP servers.
    #[command(
        after_help = "Exit codes: 0 the configuration has no errors; 1 the command found errors and lists all errors."
    )]
    Check(CheckConfig),
}

/// Options of `config check`.
#[derive(Debug, Clone, Args)]
pub struct CheckConfig {
    /// The address of a gateway.
    #[command(flatten)]
    pub listen: ListenOptions,
    /// Starts or reaches each MCP server once. A server that is not available counts as an error.
    #[arg(long = "try")]
    pub tries_servers: bool,
    /// The tools of the end-to-end tests.
    #[command(flatten)]
    pub test_tools: TestTools,
}

/// Options of `keys`.
#[derive(Debug, Clone, Args)]
pub struct KeysOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// The subcommands of `keys`.
#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Makes a key and prints the key. The key cannot be shown again, because only its hash is stored.
    Create(CreateKey),
    /// Lists keys, the oldest first, without their secrets.
    List(ListKeys),
    /// Revokes a key and ends the key's sessions. Gateways refuse the key within seconds (`key_cache` of [auth]).
    Revoke(RevokeKey),
}

/// Options of `keys create`.
#[derive(Debug, Clone, Args)]
pub struct CreateKey {
    /// Tenant of the key. The key gives access to the tenant's conversations.
    #[arg(long, value_name = "TENANT", value_parser = parse_tenant)]
    pub tenant: String,
    /// Limits the key to this owner's conversations; by default the key is for every owner of the tenant.
    #[arg(long, value_name = "OWNER", value_parser = parse_owner)]
    pub owner: Option<String>,
    /// Scopes of the key: read, write, approve; calls, to read the content of LLM calls; codec, to decrypt payloads in
    /// Temporal; admin, to manage the tenant; admin:all, to manage every tenant.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', default_value = "read,write", value_parser = parse_scope)]
    pub scope: Vec<Scope>,
    /// Lifetime of the key, e.g. 90d, or `never`: the key is valid until you revoke it. By default `key_lifetime` of
    /// [auth], or never.
    #[arg(long, value_name = "AGE", value_parser = parse_expiry)]
    pub expires: Option<Expiry>,
    /// Purpose of the key, for lists.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, value_parser = parse_name)]
    pub name: String,
}

/// How long a key is valid.
#[derive(Debug, Clone, Copy)]
pub enum Expiry {
    /// The key is valid for this time from now.
    After(Duration),
    /// The key is valid until a revocation.
    Never,
}

/// Options of `keys list`.
#[derive(Debug, Clone, Args)]
pub struct ListKeys {
    /// Only keys of this tenant.
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `keys revoke`.
#[derive(Debug, Clone, Args)]
pub struct RevokeKey {
    /// The key's id, or the key itself.
    pub id: String,
}

/// Options of `health`.
#[derive(Debug, Clone, Args)]
pub struct HealthOptions {
    /// Address of a gateway, or of a process with --health-listen. Without a path, the command asks for /readyz.
    #[arg(env = "EVERTURN_URL", default_value = "http://127.0.0.1:8080")]
    pub url: Url,
}

/// Options of `init`.
#[derive(Debug, Clone, Args)]
pub struct InitOptions {
    /// Folder for the files. The command makes a missing folder.
    #[arg(default_value = ".")]
    pub folder: PathBuf,
}

/// Options of `retention`.
#[derive(Debug, Clone, Args)]
pub struct RetentionOptions {
    /// Age of a conversation's last event, e.g. 90d or 12h.
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub older_than: Duration,
    /// Only reports the conversations to remove.
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a duration like 90d or 12h"))
}

fn parse_expiry(text: &str) -> Result<Expiry, String> {
    if text == "never" {
        return Ok(Expiry::Never);
    }
    parse_age(text).map(Expiry::After)
}

fn parse_tenant(text: &str) -> Result<String, String> {
    match ids::check(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(reason) => Err(format!("a tenant {reason}")),
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
    if text.len() <= MAX_NAME_BYTES && !text.contains(char::is_control) {
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

/// Options of `replay`.
#[derive(Debug, Clone, Args)]
pub struct ReplayOptions {
    /// Histories to replay, written by `temporal workflow show --output json`. Without a file, the command replays the
    /// turns that run on this task queue of Temporal now.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The most runs to replay, the newest first.
    #[arg(
        long,
        default_value_t = 1000,
        value_name = "COUNT",
        conflicts_with = "files"
    )]
    pub limit: usize,
    /// Also replays ended runs, as long as Temporal keeps them.
    #[arg(long, conflicts_with = "files")]
    pub closed: bool,
    /// An additional condition for Temporal's list filter, such as "TenantId = 'acme'".
    #[arg(long, value_name = "CONDITION", conflicts_with = "files")]
    pub query: Option<String>,
}
