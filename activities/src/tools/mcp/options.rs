//! What the operator says about a server: `[mcp.<name>]` of everturn.toml.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use everturn_supervisor::launch::Launch;

use super::{oauth::OAuthOptions, secrets::SecretFile};
use crate::tools::{Asker, Effect};

/// The key of `effects` for all tools that are not named there.
pub const ALL_TOOLS: &str = "*";

/// One MCP server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Its name; its tools are `<name>__<tool>`.
    pub name: String,
    /// Where it is.
    pub location: ServerLocation,
    /// Effects of its tools by their own names, before what the server says itself; see [`ALL_TOOLS`].
    pub effects: BTreeMap<String, Effect>,
    /// Names of the tools that agents may be offered; `None` for all.
    pub only: Option<Vec<String>>,
    /// How long it may take to start, answer the handshake and list its tools.
    pub connect_timeout: Duration,
    /// How long a call may stay without an answer and without progress; `None`: as long as the tool's time-out.
    pub idle_timeout: Option<Duration>,
    /// Bytes of one message of the server.
    pub max_message_bytes: usize,
    /// Tools taken from its list.
    pub max_tools: usize,
    /// Calls at once on one connection; more wait.
    pub max_concurrent_calls: usize,
    /// Tells it tenant, owner and agent with each call.
    pub tell_caller: bool,
    /// The tenants whose turns may use it; empty: all.
    pub tenants: Vec<String>,
    /// The agents that may use it; empty: all that list its tools.
    pub agents: Vec<String>,
    /// Gives each tenant a connection of its own; `None`: all tenants share one.
    pub per_tenant: Option<PerTenant>,
    /// Whose connection it is, when each tenant has one. The pool of connections sets it.
    pub tenant_id: Option<String>,
}

/// Limits of connections that belong to tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerTenant {
    /// The most connections of a worker. One that nobody uses gives way to that of another tenant.
    pub max_connections: usize,
    /// How long a connection is kept that nobody uses.
    pub idle: Duration,
}

impl Default for PerTenant {
    fn default() -> Self {
        Self {
            // A server in Node takes about 60 MB for each.
            max_connections: 16,
            // People rarely pause for longer within a conversation.
            idle: Duration::from_mins(10),
        }
    }
}

impl ServerOptions {
    /// A server with the defaults that docs/tools/mcp.md gives reasons for.
    pub fn new(name: impl Into<String>, location: ServerLocation) -> Self {
        Self {
            name: name.into(),
            location,
            effects: BTreeMap::new(),
            only: None,
            // `npx` may have to download the server first.
            connect_timeout: Duration::from_secs(30),
            idle_timeout: None,
            // Above the limit on a result (1 MiB), with room for JSON escapes and base64.
            max_message_bytes: 4 * 1024 * 1024,
            // OpenAI takes 128 tools in a request, of all servers together.
            max_tools: 128,
            max_concurrent_calls: 16,
            tell_caller: true,
            tenants: Vec::new(),
            agents: Vec::new(),
            per_tenant: None,
            tenant_id: None,
        }
    }

    /// True when these may use it.
    pub(super) fn serves(&self, asker: Asker<'_>) -> bool {
        let names =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|it| it == name);
        names(&self.tenants, asker.tenant_id) && names(&self.agents, asker.agent)
    }
}

/// Where a server is. Its secrets stay out of logs.
#[derive(Clone)]
pub enum ServerLocation {
    /// A child process of the worker that speaks over its standard input and output.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Where it runs; `None`: where the worker does.
        directory: Option<PathBuf>,
        /// Variables it gets beside the few that every program needs.
        environment: Vec<(String, String)>,
        /// Variables whose values are in files.
        environment_files: Vec<(String, SecretFile)>,
        /// What it may do.
        launch: Launch,
    },
    /// Streamable HTTP.
    Url {
        /// http or https.
        url: String,
        /// Headers that are sent with every request.
        headers: Vec<(String, String)>,
        /// Headers whose values are in files.
        header_files: Vec<(String, SecretFile)>,
        /// How tokens for it are asked for; `None`: it wants none, or has one among its headers.
        oauth: Option<Box<OAuthOptions>>,
    },
}

impl fmt::Debug for ServerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| {
            pairs
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        match self {
            Self::Command {
                command,
                directory,
                environment,
                environment_files,
                launch,
            } => f
                .debug_struct("Command")
                .field("command", command)
                .field("directory", directory)
                .field("environment", &names(environment))
                .field("environment_files", environment_files)
                .field("launch", launch)
                .finish(),
            Self::Url {
                url,
                headers,
                header_files,
                oauth,
            } => f
                .debug_struct("Url")
                .field("url", url)
                .field("headers", &names(headers))
                .field("header_files", header_files)
                .field("oauth", oauth)
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_out_of_logs() {
        let environment = vec![("TOKEN".to_owned(), "hunter2".to_owned())];
        let command = ServerLocation::Command {
            command: vec!["server".into()],
            directory: None,
            environment,
            environment_files: Vec::new(),
            launch: Launch::unconfined(),
        };
        let headers = vec![("authorization".to_owned(), "Bearer hunter2".to_owned())];
        let url = ServerLocation::Url {
            url: "https://example.com/mcp".into(),
            headers,
            header_files: Vec::new(),
            oauth: None,
        };
        let shown = format!("{command:?} {url:?}");
        assert!(
            shown.contains("TOKEN")
                && shown.contains("authorization")
                && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
