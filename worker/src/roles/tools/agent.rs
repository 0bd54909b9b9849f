//! The agent whose tools a command line names, and the end of a command with a wrong name.

use std::process::ExitCode;

use everturn_config::Config;
use everturn_proto::turn::AgentDefinition;

/// The exit code for a wrong command line. clap uses the same code.
const USAGE: u8 = 2;

/// Returns the agent with the name, or an error message.
pub(super) fn agent<'a>(config: &'a Config, name: &str) -> Result<&'a AgentDefinition, String> {
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
                "no agent has the name `{name}`; the agents are: {}",
                known.join(", ")
            )
        })
}

/// Prints why nothing was done.
pub(super) fn refuse(reason: &str) -> ExitCode {
    eprintln!("everturn: {reason}");
    ExitCode::from(USAGE)
}
