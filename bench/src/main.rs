//! `bench`: measurements on real processes, with one subcommand for each case. It ends with exit code 1 when something that
//! was measured is not as it must be. The tests check the same on a smaller scale.
//!
//! It runs the binary `everturn` in its own directory. Build both with `cargo build --workspace`, and add `--release`
//! for numbers that can be compared.
//!
//! - `cases`: what is run
//! - `measure`: what is measured, and the report
//! - `peers`: what the turn costs without Everturn
//! - `turns`: one turn after the other, and many at the same time
//! - `world`: the processes and servers that the cases run on

// A measurement that cannot be made should stop with a message.
#![allow(clippy::unwrap_used)]

mod cases;
mod measure;
mod peers;
mod turns;
mod world;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};

use self::{
    cases::{
        append, cancel, fairness, fanout, first_delta, hostile, long, outage, queue, recovery,
        replay, soak, stream, turn,
    },
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
    /// Turn W with its answer spread over two seconds, beside the plain turn.
    Stream(stream::Options),
    /// A peer of `turn`: the worker of the bare SDK. It reads TEMPORAL_ADDRESS, TASK_QUEUE and MODEL_URL.
    #[command(hide = true)]
    Floor(floor::Options),
    /// How long the turns of one tenant take while another tenant floods the workers.
    Fairness(fairness::Options),
    /// How long the turns of one tenant take, and their tokens, while another one does all that it can to a gateway.
    Hostile(hostile::Options),
    /// The attack of `hostile`, until standard input ends.
    #[command(hide = true)]
    Attack(hostile::AttackOptions),
    /// Messages that wait in one conversation: how fast one turn follows the other.
    Queue(queue::Options),
    /// How long a token takes from the model to a reader, alone and with 32 turns that speak.
    FirstDelta(first_delta::Options),
    /// A cancel while the model streams: the time until the connection to the provider is closed.
    Cancel(cancel::Options),
    /// Many readers on one gateway: the memory of each, how late a text reaches them, and all coming back at once.
    Fanout(fanout::Options),
    /// A long conversation: how fast all of it is replayed, and how long its latest page takes.
    Replay(replay::Options),
    /// 64 writers that save events through the store, to one conversation and to many.
    Append(append::Options),
    /// A turn of many tool calls, one after the other: how long each step takes, and what it adds to the history.
    Long(long::Options),
    /// Workers that are killed in the middle of a turn, and one that stands still: how soon another one takes over.
    Recovery(recovery::Options),
    /// Messages that come while the engine is away: how fast they are answered, and how often the engine is asked.
    Outage(outage::Options),
    /// Many short turns on one worker and one gateway: what they leave in memory, in the store and in Redis.
    Soak(soak::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let told = match &cli.command {
        Command::Floor(options) => floor::run(options).await.map(|()| true),
        Command::Attack(options) => hostile::attack(options).await.map(|()| true),
        command => match measured(command).await {
            Ok(report) => tell(&cli, &report),
            Err(error) => Err(error),
        },
    };
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a case.
async fn measured(command: &Command) -> anyhow::Result<Report> {
    Ok(match command {
        Command::Turn(options) => turn::run(options).await?,
        Command::Stream(options) => stream::run(options).await,
        Command::Floor(_) | Command::Attack(_) => bail!("it has no report"),
        Command::Fairness(options) => fairness::run(options).await,
        Command::Hostile(options) => hostile::run(options).await,
        Command::Queue(options) => queue::run(options).await,
        Command::FirstDelta(options) => first_delta::run(options).await,
        Command::Cancel(options) => cancel::run(options).await,
        Command::Fanout(options) => fanout::run(options).await,
        Command::Replay(options) => replay::run(options).await?,
        Command::Append(options) => append::run(options).await,
        Command::Long(options) => long::run(options).await,
        Command::Recovery(options) => recovery::run(options).await,
        Command::Outage(options) => outage::run(options).await,
        Command::Soak(options) => soak::run(options).await,
    })
}

/// Prints the report, and saves it when asked. Returns whether everything is as it must be.
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
    for fault in report.faults() {
        eprintln!("bench: {fault}");
    }
    Ok(report.faults().is_empty())
}
