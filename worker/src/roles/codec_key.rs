//! `everturn codec`: makes keys for the ring of `[codec]`. Connects to no server.

use std::process::ExitCode;

use chrono::Utc;

use crate::cli::{CodecCommand, NewCodecKey};

/// Runs a subcommand.
pub fn run(command: CodecCommand) -> anyhow::Result<ExitCode> {
    let CodecCommand::Key(NewCodecKey { id }) = command;
    let id = id.unwrap_or_else(|| Utc::now().format("%Y-%m-%d").to_string());
    println!("{}", everturn_codec::generate_key(&id)?);
    Ok(ExitCode::SUCCESS)
}
