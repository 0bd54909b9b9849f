//! Runs seeds on all cores, and prints the story of the first failing seed.

use std::{
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use clap::Parser;
use everturn_simulation::Outcome;

/// Interleavings of workers, gateways, clients and operators, chosen by seeds.
///
/// Example: `simulate --seeds 10000`
#[derive(Parser)]
#[command(name = "simulate")]
struct Args {
    /// The number of seeds.
    #[arg(long, default_value_t = 500)]
    seeds: u64,
    /// The first seed. With `--seeds 1`, the simulation of a failure is repeated.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Print the whole story of a failure. Without the option: a shorter story with the same violation.
    #[arg(long)]
    whole: bool,
    /// The number of threads.
    #[arg(long, default_value_t = 2)]
    threads: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let (next, failed) = (AtomicU64::new(args.from), Mutex::new(None));
    let begun = Instant::now();
    let end = args.from.saturating_add(args.seeds);
    thread::scope(|scope| {
        for _thread in 0..args.threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let has_failed = || {
                        let failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.is_some()
                    };
                    if seed >= end || has_failed() {
                        return;
                    }
                    let outcome = everturn_simulation::run(seed);
                    let is_fine = outcome.as_ref().is_ok_and(|it| it.violations.is_empty());
                    if !is_fine {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.get_or_insert((seed, outcome));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failed {
        None => {
            println!(
                "{} seeds in {:?}: no violation",
                args.seeds,
                begun.elapsed()
            );
            ExitCode::SUCCESS
        }
        Some((seed, Err(error))) => {
            eprintln!("seed {seed} could not run: {error:#}");
            ExitCode::FAILURE
        }
        Some((seed, Ok(outcome))) => {
            report(seed, outcome, args.whole);
            ExitCode::FAILURE
        }
    }
}

/// Prints the story of a failure.
fn report(seed: u64, outcome: Outcome, whole: bool) {
    let steps = outcome.steps;
    let outcome = if whole {
        outcome
    } else {
        everturn_simulation::shrink(outcome, None)
    };
    for line in &outcome.story {
        println!("{line}");
    }
    eprintln!(
        "seed {seed} fails after {steps} steps; the story above has {} steps:",
        outcome.steps
    );
    for violation in &outcome.violations {
        eprintln!("  {violation}");
    }
    eprintln!("Repeat: simulate --seeds 1 --from {seed}; --whole prints the seed's own story");
}
