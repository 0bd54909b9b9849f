//! `bench`: measurements on real processes, one subcommand each. It only measures; what must be true is in the tests.
//!
//! It runs the `everturn` beside it: build both with `cargo build --workspace`, `--release` for numbers to compare.

mod streams;

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
}

#[tokio::main]
async fn main() {
    match Cli::parse().command {
        Command::Streams(options) => streams::run(&options).await,
    }
}
