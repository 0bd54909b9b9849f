//! Options of `chat`.

use clap::Args;

/// Options of `chat`.
#[derive(Debug, Clone, Args)]
pub struct ChatOptions {
    /// URL of the gateway.
    #[arg(
        long,
        env = "EVERTURN_URL",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
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
