//! `everturn tools`: what an agent sees, and one tool run by hand. Needs neither Temporal nor a database.
//!
//! - `list`: the tools of an agent, as its model is offered them
//! - `call`: one call, checked like a model's
//!
//! It runs with the worker's configuration and environment: the tools are those a worker here would have.

mod call;
mod list;

use std::{process::ExitCode, sync::Arc};

use everturn_activities::tools::Tool;
use everturn_proto::turn::AgentDefinition;

use crate::{
    cli::{Common, ToolsCommand, ToolsOptions},
    config::Config,
    environment,
    roles::worker,
};

/// The exit code of a command that cannot be done as it was given. clap uses the same.
const USAGE: u8 = 2;

/// Runs one of the commands, with these tools besides the built-in ones. Exit codes: 0 done; 1 the tool failed, or the
/// configuration cannot be used; 2 the tool was not called; 130 cancelled.
pub async fn run(
    common: &Common,
    options: ToolsOptions,
    own: Vec<Arc<dyn Tool>>,
) -> anyhow::Result<ExitCode> {
    let (config, tools) = worker::configure(common, options.test_tools.effects_file, own)?;
    environment::forget_secrets();
    let ended = match options.command {
        ToolsCommand::List(options) => list::run(&config, &tools, &options).await,
        ToolsCommand::Call(options) => call::run(&config, &tools, &options).await,
    };
    tools.close().await;
    ended
}

/// The agent of this name, or what to say when there is none.
fn agent<'a>(config: &'a Config, name: &str) -> Result<&'a AgentDefinition, String> {
    config
        .agents
        .iter()
        .find(|agent| agent.name == name)
        .ok_or_else(|| {
            let known: Vec<_> = config
                .agents
                .iter()
                .map(|agent| agent.name.as_str())
                .collect();
            format!(
                "there is no agent `{name}`; there are: {}",
                known.join(", ")
            )
        })
}

/// Says why nothing was done.
fn refuse(reason: &str) -> ExitCode {
    eprintln!("everturn: {reason}");
    ExitCode::from(USAGE)
}
