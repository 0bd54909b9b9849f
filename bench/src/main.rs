//! `bench`: measurements on real processes, with one subcommand for each case. It ends with exit code 1 when something that
//! was measured is not as it must be. The tests check the same on a smaller scale.
//!
//! It runs the binary `everturn` in its own directory. Build both with `cargo build --workspace`, and add `--release`
//! for numbers that can be compared.
//!
//! - `cases`: what is run
//! - `measure`: what is measured, and the report
//! - `peers`: what the turn costs without Everturn
//! - `world`: the processes and servers that the cases run on

// A measurement that cannot be made should stop with a message.
#![allow(clippy::unwrap_used)]

mod cases;
mod measure;
mod peers;
mod world;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::{Parser, Subcommand};

use self::{
    cases::{cancel, first_delta, outage, queue, soak, streams, turn},
    measure::Report,
    peers::floor,
};

/// Measurements on real processes.
#[derive(Debug, Parser)]
#[command(max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Writes the figures into this file, beside those of other cases that are there.
    #[arg(long, global = true, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Prints the ratio of each figure to the one in this file.
    #[arg(long, global = true, value_name = "FILE")]
    compare: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Turn W: what it costs, alone and with 32 at the same time.
    Turn(turn::Options),
    /// A peer of `turn`: the worker of the bare SDK. It reads TEMPORAL_ADDRESS, TASK_QUEUE and MODEL_URL.
    #[command(hide = true)]
    Floor(floor::Options),
    /// Messages that wait in one conversation: how fast one turn follows the other.
    Queue(queue::Options),
    /// How long a token takes from the model to a reader, alone and with 32 turns that speak.
    FirstDelta(first_delta::Options),
    /// A cancel while the model streams: the time until the connection to the provider is closed.
    Cancel(cancel::Options),
    /// Open event streams on one gateway: the memory of each, and how late a text reaches them.
    Streams(streams::Options),
    /// Messages that come while the engine is away: how fast they are answered, and how often the engine is asked.
    Outage(outage::Options),
    /// Many short turns on one worker and one gateway: what they leave in memory, in the store and in Redis.
    Soak(soak::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let is_as_it_must_be = match &cli.command {
        Command::Turn(options) => {
            let report = turn::run(options).await;
            report.and_then(|report| tell(&cli, &report))
        }
        Command::Floor(options) => floor::run(options).await.map(|()| true),
        Command::Queue(options) => tell(&cli, &queue::run(options).await),
        Command::FirstDelta(options) => tell(&cli, &first_delta::run(options).await),
        Command::Cancel(options) => tell(&cli, &cancel::run(options).await),
        Command::Streams(options) => {
            streams::run(options).await;
            Ok(true)
        }
        Command::Outage(options) => Ok(outage::run(options).await),
        Command::Soak(options) => Ok(soak::run(options).await),
    };
    match is_as_it_must_be {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the report, and saves it when asked.
fn tell(cli: &Cli, report: &Report) -> anyhow::Result<bool> {
    let earlier = cli.compare.as_ref().map(|file| {
        let text =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is no report", file.display()))
    });
    report.print(earlier.transpose()?.as_ref());
    if let Some(file) = &cli.save {
        report.save(file)?;
    }
    Ok(true)
}
