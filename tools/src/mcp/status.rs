//! The state of a server: for operators, and in the words for models.

use std::{error::Error, time::Duration};

use everturn_untrusted::cut;
use rmcp::model::ServerPeerInfo;

/// The most characters of a server's instructions. Every request of a turn has them.
const MAX_INSTRUCTIONS: usize = 4096;
/// The most errors in a chain of causes.
const MAX_CAUSES: usize = 8;

/// The state of a server, as a worker finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// The name of the server.
    pub name: String,
    /// The command or the URL, without secrets.
    pub address: String,
    /// The time of the try to connect.
    pub took: Duration,
    /// The outcome of the try.
    pub state: ServerState,
}

/// The outcome of a try to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// The server has listed its tools.
    Connected {
        /// The server's own name and version.
        server: String,
        /// The version of the protocol.
        protocol: String,
        /// The number of tools that agents may be offered.
        tools: usize,
        /// True when models read the server's instructions.
        has_instructions: bool,
    },
    /// Each person has a connection of its own after the person's consent. A command has no person, and does not connect.
    NeedsConsent,
    /// The server cannot be used.
    Unavailable {
        /// The reason.
        reason: String,
        /// The last lines on the standard error of a program.
        output: Vec<String>,
    },
}

impl ServerState {
    pub(super) fn connected(
        server: Option<&ServerPeerInfo>,
        tools: usize,
        has_instructions: bool,
    ) -> Self {
        let named = server.and_then(|server| server.server_info.as_ref());
        Self::Connected {
            server: named.map_or_else(String::new, |named| {
                cut(&format!("{} {}", named.name, named.version), 100)
            }),
            protocol: server.map_or_else(String::new, |server| {
                cut(&server.protocol_version.to_string(), 30)
            }),
            tools,
            has_instructions,
        }
    }
}

/// Returns the words for the model about a server without known tools.
pub(super) fn missing(server: &str) -> String {
    format!(
        "The tools of the server `{server}` are missing now, because the server is starting or is not available. Do not \
         guess at their results. If you need them, say that they are missing."
    )
}

/// Returns the words for the model about a server that the user has not consented to, or whose consents cannot be read.
pub(super) fn without_consent(server: &str, why: &str) -> String {
    format!(
        "The tools of the server `{server}` cannot be used now. {why} Do not guess at their results."
    )
}

/// Returns a server's instructions in the words for the model; `None` for empty instructions.
pub(super) fn instructions(server: &str, said: &str) -> Option<String> {
    let said = said.trim();
    (!said.is_empty()).then(|| {
        let said = cut(said, MAX_INSTRUCTIONS);
        format!("The server of the tools `{server}__*` says of their use:\n{said}")
    })
}

/// Returns an error with its causes, each once.
pub(super) fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    for cause in causes.take(MAX_CAUSES) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_bounded() {
        assert_eq!(instructions("shop", " \n"), None);
        let long = instructions("shop", &"x".repeat(100_000)).unwrap();
        assert!(long.starts_with("The server of the tools `shop__*`"));
        assert!(long.chars().count() < MAX_INSTRUCTIONS + 100);
    }
}
