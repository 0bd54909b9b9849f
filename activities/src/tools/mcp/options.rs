//! What the operator says about a server: `[mcp.<name>]` of everturn.toml.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use crate::tools::Effect;

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
    /// Calls at once; more wait.
    pub max_concurrent_calls: usize,
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
        }
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
    },
    /// Streamable HTTP.
    Url {
        /// http or https.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, String)>,
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
            } => f
                .debug_struct("Command")
                .field("command", command)
                .field("directory", directory)
                .field("environment", &names(environment))
                .finish(),
            Self::Url { url, headers } => f
                .debug_struct("Url")
                .field("url", url)
                .field("headers", &names(headers))
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
        };
        let headers = vec![("authorization".to_owned(), "Bearer hunter2".to_owned())];
        let url = ServerLocation::Url {
            url: "https://example.com/mcp".into(),
            headers,
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
