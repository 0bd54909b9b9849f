//! Options of the commands that talk to a gateway: `chat`, `ls`, `tail` and `show`.

use std::time::Duration;

use clap::Args;
use everturn_client::{ClientError, GatewayClient};

use crate::chat::tools::Offered;

/// The address of a gateway, and the credential.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The gateway")]
pub struct GatewayAddress {
    /// URL of the gateway.
    #[arg(
        long,
        env = "EVERTURN_URL",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    pub url: String,
    /// Key or token, if the gateway requires one.
    #[arg(
        long,
        env = "EVERTURN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
}

impl GatewayAddress {
    /// Returns a client of the gateway.
    pub fn client(&self) -> Result<GatewayClient, ClientError> {
        GatewayClient::with_token(&self.url, self.token.as_deref())
    }
}

/// Options of `chat`.
#[derive(Debug, Clone, Args)]
pub struct ChatOptions {
    /// Continues this conversation. Without the option, a new conversation begins.
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
    /// Agent of a new conversation.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Model of the messages, as `provider/model`, among the models of the agent. Without the option, the model of the
    /// conversation answers, or else the agent's own model.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Approves every tool call that waits for a person. Without the option, the chat asks you; without a terminal, it
    /// denies the calls.
    #[arg(long)]
    pub approve: bool,
    /// Runs this command when the agent calls the client tool NAME. The command gets the input as JSON on standard
    /// input, and its standard output is the result. The chat asks you before each call. May be given several times.
    #[arg(long = "tool", value_name = "NAME=COMMAND")]
    pub tools: Vec<Offered>,
    /// Runs the commands of --tool without asking. The chat still asks about calls that waited before it began.
    #[arg(long)]
    pub yes_tools: bool,
    /// The longest duration of a --tool command.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    pub tool_timeout: Duration,
    /// Shows this number of the newest events of a continued conversation; by default 200 on a terminal, otherwise 0.
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub history: Option<u32>,
    /// Prints each event of the turns as a line of JSON in the API's format (docs/api/events.md), and prints nothing
    /// more on standard output.
    #[arg(long)]
    pub json: bool,
    /// Sends a single message, prints the answer and exits. Without a message, the chat reads messages line by line.
    pub message: Option<String>,
    /// The gateway.
    #[command(flatten)]
    pub gateway: GatewayAddress,
}

/// Options of `ls`.
#[derive(Debug, Clone, Args)]
pub struct LsOptions {
    /// Lists only conversations of this agent.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Lists only conversations with a call that waits for an approval, or for a client.
    #[arg(long, value_name = "PARTY", value_parser = ["approval", "client_tool"])]
    pub waiting_for: Option<String>,
    /// Lists only conversations with this text in the title.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Lists this number of conversations, with the last updated first.
    #[arg(long, short = 'n', default_value_t = 20, value_name = "CONVERSATIONS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Prints each conversation as a line of JSON in the API's format (docs/api/conversations.md).
    #[arg(long)]
    pub json: bool,
    /// The gateway.
    #[command(flatten)]
    pub gateway: GatewayAddress,
}

/// Options of `approvals`.
#[derive(Debug, Clone, Args)]
pub struct ApprovalsOptions {
    /// Lists this number of calls, with the nearest deadline first.
    #[arg(long, short = 'n', default_value_t = 20, value_name = "CALLS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Prints each call as a line of JSON in the API's format (docs/api/tool-calls.md).
    #[arg(long)]
    pub json: bool,
    /// The gateway.
    #[command(flatten)]
    pub gateway: GatewayAddress,
}

/// Options of `tail`.
#[derive(Debug, Clone, Args)]
pub struct TailOptions {
    /// The conversation.
    pub conversation: String,
    /// Begins with this number of the newest events.
    #[arg(long, short = 'n', default_value_t = 20, value_name = "EVENTS")]
    pub lines: u32,
    /// Ends at the last event instead of waiting for more.
    #[arg(long)]
    pub no_follow: bool,
    /// Prints each event as a line of JSON in the API's format (docs/api/events.md).
    #[arg(long)]
    pub json: bool,
    /// The gateway.
    #[command(flatten)]
    pub gateway: GatewayAddress,
}

/// Options of `show`.
#[derive(Debug, Clone, Args)]
pub struct ShowOptions {
    /// The conversation.
    pub conversation: String,
    /// The turn of this message; by default the newest turn.
    #[arg(long, value_name = "MESSAGE_ID", conflicts_with = "all")]
    pub turn: Option<String>,
    /// Shows every turn with events that were read.
    #[arg(long)]
    pub all: bool,
    /// Reads this number of the newest events.
    #[arg(long, default_value_t = 5000, value_name = "EVENTS", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub events: u32,
    /// Width in columns; by default the width of the terminal, or 110.
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..=1000))]
    pub width: Option<u16>,
    /// The gateway.
    #[command(flatten)]
    pub gateway: GatewayAddress,
}
