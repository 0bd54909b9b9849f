//! Options of `tools`.

use clap::{Args, Subcommand};
use everturn_proto::words::{DEFAULT_AGENT, DEFAULT_TENANT};

use super::serve::TestTools;

/// Options of `tools`.
#[derive(Debug, Clone, Args)]
pub struct ToolsOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub command: ToolsCommand,
    /// The tools of the end-to-end tests.
    #[command(flatten)]
    pub test_tools: TestTools,
}

/// The subcommands of `tools`.
#[derive(Debug, Clone, Subcommand)]
pub enum ToolsCommand {
    /// Shows the tools that an agent's model is offered. Asks MCP servers for tools.
    #[command(
        after_help = "Exit codes: 0 done; 1 the configuration cannot be used, or with --strict a tool is missing; \
                      2 no agent has this name."
    )]
    List(ListTools),
    /// Starts or reaches each MCP server once, and shows whether its tools can be used. Shows the reason for a server that
    /// is not available, with the last lines of its standard error.
    #[command(
        after_help = "Exit codes: 0 every server is available; 1 a server is not available, or the configuration \
                            cannot be used; 2 no server has this name."
    )]
    Status(ToolsStatus),
    /// Runs a tool once and prints its result as JSON.
    #[command(
        after_help = "Exit codes: 0 done; 1 the tool failed, or the configuration cannot be used; 2 the tool was not \
                      called; 130 the call was cancelled with Ctrl-C."
    )]
    Call(CallTool),
}

/// Options of `tools list`.
#[derive(Debug, Clone, Args)]
pub struct ListTools {
    /// The agent.
    #[arg(long, default_value = DEFAULT_AGENT, value_name = "NAME")]
    pub agent: String,
    /// The tenant in whose name the tools are listed.
    #[arg(long, default_value = DEFAULT_TENANT, value_name = "TENANT")]
    pub tenant: String,
    /// Prints JSON, with the schemas.
    #[arg(long)]
    pub json: bool,
    /// Exits with 1 if a tool of the agent is unavailable, for example because its server is down.
    #[arg(long)]
    pub strict: bool,
}

/// Options of `tools status`.
#[derive(Debug, Clone, Args)]
pub struct ToolsStatus {
    /// The servers. Without a name: all servers.
    #[arg(value_name = "SERVER")]
    pub servers: Vec<String>,
    /// The tenant in whose name the servers are reached.
    #[arg(long, default_value = DEFAULT_TENANT, value_name = "TENANT")]
    pub tenant: String,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `tools call`.
#[derive(Debug, Clone, Args)]
pub struct CallTool {
    /// Name of the tool, as the model sees it.
    pub name: String,
    /// Input of the tool: a JSON object.
    #[arg(default_value = "{}", value_name = "JSON")]
    pub input: String,
    /// Checks the agent for the tool, and uses the agent's time-out.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The tenant in whose name the tool is called.
    #[arg(long, default_value = DEFAULT_TENANT, value_name = "TENANT")]
    pub tenant: String,
    /// Runs a tool that must not run twice without asking.
    #[arg(long)]
    pub yes: bool,
}
