//! `bench`: measurements on real processes, with one subcommand for each measurement. It ends with exit code 1 when
//! something that was measured is not as it must be. The tests check the same on a smaller scale.
//!
//! It runs the binary `everturn` in its own directory. Build both with `cargo build --workspace`, and add `--release`
//! for numbers that can be compared.

mod outage;
mod soak;
mod streams;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measurements on real processes.
#[derive(Debug, Parser)]
#[command(max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Open event streams on one gateway: the memory of each, and how late a text reaches them.
    Streams(streams::Options),
    /// Messages that come while the engine is away: how fast they are answered, and how often the engine is asked.
    Outage(outage::Options),
    /// Many short turns on one worker and one gateway: what they leave in memory, in the store and in Redis.
    Soak(soak::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let is_as_it_must_be = match Cli::parse().command {
        Command::Streams(options) => {
            streams::run(&options).await;
            true
        }
        Command::Outage(options) => outage::run(&options).await,
        Command::Soak(options) => soak::run(&options).await,
    };
    if is_as_it_must_be {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
