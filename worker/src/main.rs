//! `everturn`: reads the command line and runs one role.

use std::process::ExitCode;

use clap::Parser;
use everturn_worker::{
    chat,
    cli::{Cli, Command},
    dev, roles,
};

#[tokio::main]
async fn main() -> ExitCode {
    // One TLS backend for everything; without this, HTTP clients panic at their first request.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    match run(cli).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("everturn: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    cli.start_logging()?;
    match cli.command {
        Command::Dev(options) => dev::run(&cli.common, options).await,
        Command::Worker(options) => roles::worker::run(&cli.common, options).await,
        Command::Gateway(options) => roles::gateway::run(&cli.common, options).await,
        Command::Migrate => roles::migrate::run(&cli.common).await,
        Command::Retention(options) => roles::retention::run(&cli.common, options).await,
        Command::Keys(options) => roles::keys::run(&cli.common, options.command).await,
        Command::Chat(options) => chat::run(options).await,
    }
}
