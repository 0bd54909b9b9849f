//! `bench`: measurements on real processes, with one subcommand per case. The exit code is 1 when a measured value
//! violates an expectation. The tests check the same expectations on a smaller scale.
//!
//! The cases run the binary `everturn` from the directory of `bench`. Build both with `cargo build --workspace`, and
//! add `--release` for comparable numbers.
//!
//! - `cases`: the cases
//! - `measure`: the measurements and the report
//! - `peers`: the cost of the turn without Everturn
//! - `turns`: sequential and concurrent turns
//! - `world`: the processes and servers under the cases

// A failed measurement should stop with a message.
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
        append, cancel, delete, fairness, fanout, first_delta, hostile, long, outage, queue,
        recovery, replay, scale, soak, stream, turn,
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
    /// Writes the figures into the file, and keeps the figures of other cases in the file.
    #[arg(long, global = true, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Prints the ratio of every figure to the figure in the file.
    #[arg(long, global = true, value_name = "FILE")]
    compare: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Cost of turn W, alone and with 32 concurrent turns.
    Turn(turn::Options),
    /// Cost of turn W with an answer spread over two seconds, and of the plain turn.
    Stream(stream::Options),
    /// A peer of `turn`: the worker on the bare SDK. Reads TEMPORAL_ADDRESS, TASK_QUEUE and MODEL_URL.
    #[command(hide = true)]
    Floor(floor::Options),
    /// Duration of one tenant's turns while a second tenant floods the workers.
    Fairness(fairness::Options),
    /// Duration of one tenant's turns and tokens while a hostile tenant attacks the gateway.
    Hostile(hostile::Options),
    /// The attack of `hostile`, until standard input ends.
    #[command(hide = true)]
    Attack(hostile::AttackOptions),
    /// Turns per second when many messages wait in one conversation.
    Queue(queue::Options),
    /// Latency of a token from the model to a reader, alone and with 32 streaming turns.
    FirstDelta(first_delta::Options),
    /// Time from a cancel until the connection to the model's provider is closed.
    Cancel(cancel::Options),
    /// Deletion of a conversation of many turns, and turns of other conversations meanwhile.
    Delete(delete::Options),
    /// Many readers on one gateway: memory per reader, latency of a text, and a simultaneous reconnect of every reader.
    Fanout(fanout::Options),
    /// A long conversation: speed of a full replay, and latency of the latest page.
    Replay(replay::Options),
    /// 64 writers that save events through the store, into one conversation and into many.
    Append(append::Options),
    /// A turn with many sequential tool calls: duration of a step, and the step's share of the history.
    Long(long::Options),
    /// Killed and paused workers during a turn: time until a second worker has finished the turn.
    Recovery(recovery::Options),
    /// Messages sent during an outage of Temporal: time until every answer, and calls to Temporal per second.
    Outage(outage::Options),
    /// Thousands of turns in a model call at the same time: processor time, memory and queries while the models speak.
    Scale(scale::Options),
    /// Many short turns on one worker and one gateway: memory, stored rows and Redis keys left behind.
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
        Command::Delete(options) => Box::pin(delete::run(options)).await?,
        Command::Fanout(options) => fanout::run(options).await,
        Command::Replay(options) => replay::run(options).await?,
        Command::Append(options) => append::run(options).await,
        Command::Long(options) => long::run(options).await,
        Command::Recovery(options) => recovery::run(options).await,
        Command::Outage(options) => outage::run(options).await,
        Command::Scale(options) => scale::run(options).await?,
        Command::Soak(options) => soak::run(options).await,
    })
}

/// Prints the report, and saves the report on request. Returns true without violated expectations.
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
