//! Options of the commands that talk to a gateway: `chat`, `tail` and `show`.

use std::time::Duration;

use clap::Args;
use everturn_client::{ClientError, GatewayClient};

use crate::chat::Offered;

/// Which gateway, and with which credential.
#[derive(Debug, Clone, Args)]
pub struct GatewayAddress {
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
}

impl GatewayAddress {
    /// A client of this gateway.
    pub fn client(&self) -> Result<GatewayClient, ClientError> {
        GatewayClient::with_token(&self.url, self.token.as_deref())
    }
}

/// Options of `chat`.
#[derive(Debug, Clone, Args)]
pub struct ChatOptions {
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayAddress,
    /// Goes on with this conversation; without it a new one begins.
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
    /// Agent of a new conversation.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Approves every tool call that waits for a person. Without it you are asked, and with no terminal calls are denied.
    #[arg(long)]
    pub approve: bool,
    /// Runs this command when the agent calls the client tool NAME: the input is JSON on its standard input, and what it
    /// writes to standard output is the result. You are asked each time. May be given several times.
    #[arg(long = "tool", value_name = "NAME=COMMAND")]
    pub tools: Vec<Offered>,
    /// Runs the commands of --tool without asking. Calls that waited before this chat began are still asked about.
    #[arg(long)]
    pub yes_tools: bool,
    /// How long a command of --tool may run.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    pub tool_timeout: Duration,
    /// Shows so many of the newest events of a conversation that goes on; by default 200 on a terminal, else none.
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub history: Option<u32>,
    /// Prints each event of the turns as a line of JSON, as it is on the wire (docs/api/events.md), and no other line on
    /// standard output.
    #[arg(long)]
    pub json: bool,
    /// Sends one message, prints the answer and exits; without it, messages are read line by line.
    pub message: Option<String>,
}

/// Options of `tail`.
#[derive(Debug, Clone, Args)]
pub struct TailOptions {
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayAddress,
    /// The conversation.
    pub conversation: String,
    /// Begins with so many of the newest events.
    #[arg(long, short = 'n', default_value_t = 20, value_name = "EVENTS")]
    pub lines: u32,
    /// Ends at the last event, and does not wait for more.
    #[arg(long)]
    pub no_follow: bool,
    /// Prints each event as a line of JSON, as it is on the wire (docs/api/events.md).
    #[arg(long)]
    pub json: bool,
}

/// Options of `show`.
#[derive(Debug, Clone, Args)]
pub struct ShowOptions {
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayAddress,
    /// The conversation.
    pub conversation: String,
    /// The turn of this message; without it, the newest one.
    #[arg(long, value_name = "MESSAGE_ID", conflicts_with = "all")]
    pub turn: Option<String>,
    /// All turns among the events that are read.
    #[arg(long)]
    pub all: bool,
    /// Reads so many of the newest events.
    #[arg(long, default_value_t = 5000, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub events: u32,
    /// Width in columns; without it, that of the terminal, or 110.
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..=1000))]
    pub width: Option<u16>,
}
