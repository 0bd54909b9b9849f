//! `everturn tools`: shows an agent's tools, and runs a tool by hand. Needs neither Temporal nor a database.
//!
//! - `list`: lists an agent's tools, as its model sees them
//! - `agent`: the agent whose tools are meant
//! - `status`: the state of each MCP server
//! - `call`: calls a tool, with the checks of a model's call
//!
//! The command uses the worker's configuration and environment. Therefore it has the tools of a worker on this
//! machine.

mod agent;
mod call;
mod list;
pub(super) mod status;

use std::{process::ExitCode, sync::Arc};

use everturn_tools::Tool;

use crate::{
    cli::{Common, ToolsCommand, ToolsOptions},
    environment, own_ports,
    reload::Configured,
};

/// Runs a subcommand, with `own` tools besides the built-in ones. Exit codes: 0 done; 1 the tool failed, or the
/// configuration cannot be used; 2 the tool was not called; 130 cancelled.
pub async fn run(
    common: &Common,
    options: ToolsOptions,
    own: Vec<Arc<dyn Tool>>,
) -> anyhow::Result<ExitCode> {
    let configured = Configured::for_worker(
        common,
        own_ports::of(common),
        options.test_tools.effects_file,
        own,
    )?;
    let servers = configured.servers();
    let (config, tools) = (configured.config, configured.tools);
    environment::forget_secrets();
    let ended = match options.command {
        ToolsCommand::List(options) => list::run(&config, &tools, &options).await,
        ToolsCommand::Status(options) => status::run(&servers, &options).await,
        ToolsCommand::Call(options) => call::run(&config, &tools, &options).await,
    };
    tools.close().await;
    ended
}
