//! The operator's settings for a server: `[mcp.<name>]` of everturn.toml.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use everturn_proto::words::Effect;
use everturn_supervisor::launch::Launch;

use url::Url;

use super::{
    oauth::{ConsentServer, OAuthGrant, OAuthOptions},
    questions::Questions,
    secrets::SecretFile,
};
use crate::{context::Asker, egress::Egress, names};

/// The key of `effects` for all tools without an entry of their own.
pub const ALL_TOOLS: &str = "*";

/// The settings of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// The name of the server. Tools of the server are called `<name>__<tool>`.
    pub name: String,
    /// The location of the server.
    pub location: ServerLocation,
    /// Effects by the server's names of tools; they take precedence over the server's hints. See [`ALL_TOOLS`].
    pub effects: BTreeMap<String, Effect>,
    /// Templates of titles by the server's names of tools; they take precedence over the server's titles.
    pub titles: BTreeMap<String, String>,
    /// The names of probes by the names of their tools. Both are the server's names.
    pub probes: BTreeMap<String, String>,
    /// Names of the tools that agents may be offered; `None` for all tools.
    pub only: Option<Vec<String>>,
    /// Whether models read the server's instructions.
    pub instructions: bool,
    /// The time limit for the start, the handshake and the list of tools. The limit doubles after each start that took too
    /// long.
    pub connect_timeout: Duration,
    /// The time limit without an answer and without progress; `None` means the tool's time-out.
    pub idle_timeout: Option<Duration>,
    /// The largest message of the server, in bytes.
    pub max_message_bytes: usize,
    /// The most tools taken from the server's list.
    pub max_tools: usize,
    /// The most parallel calls on a connection; further calls wait.
    pub max_concurrent_calls: usize,
    /// The tools that may ask people.
    pub questions: Questions,
    /// Whether calls tell the server the tenant, owner and agent.
    pub tell_caller: bool,
    /// The tenants whose turns may use the server; empty for all tenants.
    pub tenants: Vec<String>,
    /// The agents that may use the server; empty for every agent with tools of the server in its list.
    pub agents: Vec<String>,
    /// Gives every tenant, or every person who consents, a separate connection; `None` means that tenants share a connection.
    pub per_tenant: Option<PerTenant>,
    /// The tenant of the connection, with a connection per tenant. Set by the pool of connections.
    pub tenant_id: Option<String>,
}

/// Limits of connections per tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerTenant {
    /// The most connections of a worker. An unused connection gives way to a connection of a different tenant.
    pub max_connections: usize,
    /// The time until an unused connection is closed.
    pub idle: Duration,
}

impl Default for PerTenant {
    fn default() -> Self {
        Self {
            // A server in Node takes about 60 MB per connection.
            max_connections: 16,
            // People rarely pause for longer within a conversation.
            idle: Duration::from_mins(10),
        }
    }
}

impl ServerOptions {
    /// Creates settings with the defaults that docs/tools/mcp.md explains.
    pub fn new(name: impl Into<String>, location: ServerLocation) -> Self {
        Self {
            name: name.into(),
            location,
            effects: BTreeMap::new(),
            titles: BTreeMap::new(),
            probes: BTreeMap::new(),
            only: None,
            instructions: true,
            // `npx` or `uvx` may have to download the server first.
            connect_timeout: Duration::from_mins(1),
            idle_timeout: None,
            // More than the limit on a result (1 MiB), with room for JSON escapes and base64.
            max_message_bytes: 4 * 1024 * 1024,
            // OpenAI accepts 128 tools in a request, counted over all servers.
            max_tools: 128,
            max_concurrent_calls: 16,
            questions: Questions::default(),
            tell_caller: true,
            tenants: Vec::new(),
            agents: Vec::new(),
            per_tenant: None,
            tenant_id: None,
        }
    }

    /// Returns true when people consent to the use of the server in their names.
    pub fn needs_consent(&self) -> bool {
        self.oauth_of_people().is_some()
    }

    /// Returns the server as people consent to it; `None` for a server without their consent.
    pub fn consent_server(&self, egress: &Egress) -> Option<ConsentServer> {
        let oauth = self.oauth_of_people()?.clone();
        let (name, tenants) = (self.name.clone(), self.tenants.clone());
        Some(ConsentServer::new(name, tenants, oauth, egress.clone()))
    }

    fn oauth_of_people(&self) -> Option<&OAuthOptions> {
        let ServerLocation::Url { oauth, .. } = &self.location else {
            return None;
        };
        let oauth = oauth.as_deref();
        oauth.filter(|oauth| oauth.grant == OAuthGrant::AuthorizationCode)
    }

    /// Returns the name of a tool's probe. Models see both names.
    pub(super) fn probe_of(&self, tool: &str) -> Option<String> {
        let mut probes = self.probes.iter();
        let (_, probe) = probes.find(|(of, _)| names::qualified(&self.name, of) == tool)?;
        Some(names::qualified(&self.name, probe))
    }

    /// Returns true when the asker may use the server.
    pub(super) fn serves(&self, asker: Asker<'_>) -> bool {
        let names =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|it| it == name);
        names(&self.tenants, asker.tenant_id) && names(&self.agents, asker.agent)
    }
}

/// The location of a server. Its secrets stay out of logs.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerLocation {
    /// A child process of the worker that communicates over its standard input and output.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// The working directory; `None` means the worker's directory.
        directory: Option<PathBuf>,
        /// Variables in addition to the few that every program needs.
        environment: Vec<(String, String)>,
        /// Variables with values in files.
        environment_files: Vec<(String, SecretFile)>,
        /// The rights of the process.
        launch: Launch,
    },
    /// Streamable HTTP.
    Url {
        /// The URL, with http or https.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
        /// Headers with values in files.
        header_files: Vec<(String, SecretFile)>,
        /// The settings for tokens; `None` for a server without tokens, or with a fixed token in a header.
        oauth: Option<Box<OAuthOptions>>,
    },
    /// The configuration lacks a value, for example the value of a variable. The worker starts without the server.
    Unusable {
        /// The reason, for operators.
        reason: String,
    },
}

impl ServerLocation {
    /// Returns the program or the URL, without arguments, queries and credentials, which may be secrets.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Command { command, .. } => command.first().cloned().unwrap_or_default(),
            Self::Url { url, .. } => match Url::parse(url) {
                Ok(mut url) => {
                    url.set_query(None);
                    // A URL without a host has no credentials.
                    let _no_host = url.set_username("");
                    let _no_host = url.set_password(None);
                    url.to_string()
                }
                Err(_) => String::new(),
            },
            Self::Unusable { .. } => String::new(),
        }
    }
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
            Self::Unusable { reason } => {
                f.debug_struct("Unusable").field("reason", reason).finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_found_by_the_name_that_models_see() {
        let location = ServerLocation::Unusable {
            reason: String::new(),
        };
        let probes = [("pay", "find"), ("send.mail", "find")];
        let options = ServerOptions {
            probes: probes
                .map(|(tool, probe)| (tool.into(), probe.into()))
                .into(),
            ..ServerOptions::new("bank", location)
        };
        assert_eq!(options.probe_of("bank__pay").as_deref(), Some("bank__find"));
        let odd = names::qualified("bank", "send.mail");
        assert_eq!(options.probe_of(&odd).as_deref(), Some("bank__find"));
        assert_eq!(options.probe_of("bank__find"), None);
    }

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
