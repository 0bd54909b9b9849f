//! Runs seeds on all cores, and prints the story of the first failing seed.

use std::{
    collections::BTreeMap,
    io::{IsTerminal, stderr},
    num::{NonZeroU64, NonZeroUsize},
    process::ExitCode,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use everturn_simulation::Outcome;

/// The exit code of a run in which a seed could not run. Clap has this code for wrong arguments, too.
const COULD_NOT_RUN: u8 = 2;
/// The time between two lines about the progress, when the lines go into a file.
const PROGRESS_IN_A_FILE: Duration = Duration::from_secs(30);
/// The time between two updates of the line about the progress on a terminal.
const PROGRESS_ON_A_TERMINAL: Duration = Duration::from_millis(500);

/// Interleavings of workers, gateways, clients and operators, chosen by seeds.
///
/// Each seed chooses an order of events: steps of gateways and workers, deaths, time-outs, lost calls. The program checks
/// the promises of Everturn in each order. After a violation, the program stops, and lists the failing seeds with their
/// violations on stderr. For the smallest failing seed, the program looks for a shorter order with the same violation, and
/// prints the story of that order to stdout.
///
/// Exit code: 0 without a violation, 1 after a violation, 2 for wrong arguments or when a seed could not run.
///
/// Example: `simulate --seeds 10000`. Repeat seed 17 with `simulate --from 17 --seeds 1`.
#[derive(Parser)]
#[command(name = "simulate")]
struct Args {
    /// The number of seeds to run.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// The number of threads, each with a seed at a time. Default: the number of cores.
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// Stop after this number of failing seeds. Seeds that run at that moment end first.
    #[arg(long, default_value = "1")]
    failures: NonZeroU64,
    /// Print no story.
    #[arg(long)]
    brief: bool,
    /// Print the whole story of the seed, and look for no shorter order.
    #[arg(long)]
    whole: bool,
}

/// A seed with its result.
type Ended = (u64, anyhow::Result<Outcome>);

/// The seeds that have ended.
#[derive(Default)]
struct Results {
    ended: u64,
    steps: u64,
    failed: BTreeMap<u64, anyhow::Result<Outcome>>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let jobs = args.jobs.unwrap_or_else(cores);
    let (next, stops) = (AtomicU64::new(args.from), AtomicBool::new(false));
    let end = args.from.saturating_add(args.seeds);
    let begun = Instant::now();
    let results = thread::scope(|scope| {
        let (sender, receiver) = channel();
        let (next, stops) = (&next, &stops);
        for job in 0..jobs.get() {
            let sender = sender.clone();
            scope.spawn(move || {
                stay_on_core(job);
                run_seeds(next, end, stops, &sender);
            });
        }
        drop(sender);
        collect(&args, begun, stops, &receiver)
    });
    report(&args, begun, &results)
}

/// Keeps the thread, and the threads that the thread will start, on a core. The threads of a simulation take turns: the actors
/// wait for SQLite, and SQLite waits for the actors. On one core a turn takes half of the time.
#[cfg(target_os = "linux")]
fn stay_on_core(job: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let cores: Vec<_> = cores.collect();
    if let Some(core) = cores.get(job.checked_rem(cores.len()).unwrap_or(0)) {
        let mut only = CpuSet::new();
        only.set(*core);
        // A refusal costs time, and changes no result.
        let _ = sched_setaffinity(None, &only);
    }
}

#[cfg(not(target_os = "linux"))]
fn stay_on_core(_job: usize) {}

/// Runs seeds until the last seed, or until the program stops.
fn run_seeds(next: &AtomicU64, end: u64, stops: &AtomicBool, ended: &Sender<Ended>) {
    while !stops.load(Ordering::Relaxed) {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end || ended.send((seed, everturn_simulation::run(seed))).is_err() {
            return;
        }
    }
}

/// Takes the results of the threads until every thread has ended, and shows the progress.
fn collect(args: &Args, begun: Instant, stops: &AtomicBool, receiver: &Receiver<Ended>) -> Results {
    let is_terminal = stderr().is_terminal();
    let pause = if is_terminal {
        PROGRESS_ON_A_TERMINAL
    } else {
        PROGRESS_IN_A_FILE
    };
    let mut results = Results::default();
    let mut shown = begun;
    loop {
        match receiver.recv_timeout(pause) {
            Ok((seed, outcome)) => {
                results.add(seed, outcome);
                if results.failed.len() as u64 >= args.failures.get() {
                    stops.store(true, Ordering::Relaxed);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if shown.elapsed() >= pause {
            shown = Instant::now();
            let line = results.progress(args.seeds, begun);
            if is_terminal {
                eprint!("\r{line}\x1b[K");
            } else {
                eprintln!("{line}");
            }
        }
    }
    if is_terminal {
        eprint!("\r\x1b[K");
    }
    results
}

impl Results {
    fn add(&mut self, seed: u64, outcome: anyhow::Result<Outcome>) {
        self.ended += 1;
        if let Ok(outcome) = &outcome {
            self.steps += outcome.steps as u64;
        }
        if !outcome.as_ref().is_ok_and(|it| it.violations.is_empty()) {
            self.failed.insert(seed, outcome);
        }
    }

    fn progress(&self, seeds: u64, begun: Instant) -> String {
        let (ended, failed) = (self.ended, self.failed.len());
        let rate = ended * 1000
            / u64::try_from(begun.elapsed().as_millis())
                .unwrap_or(1)
                .max(1);
        format!("{ended} of {seeds} seeds, {failed} failed, {rate} seeds/s")
    }
}

/// Prints the story of a failing seed, or a shorter story with the same violation.
fn tell(outcome: &Outcome, whole: bool) {
    let shorter = (!whole).then(|| everturn_simulation::shrink(outcome.clone(), None));
    let told = shorter.as_ref().unwrap_or(outcome);
    for line in &told.story {
        println!("{line}");
    }
    eprintln!("the story has {} of {} steps:", told.steps, outcome.steps);
    for violation in &told.violations {
        eprintln!("  {violation}");
    }
}

/// Prints the results, and returns the exit code.
fn report(args: &Args, begun: Instant, results: &Results) -> ExitCode {
    let summary = results.progress(args.seeds, begun);
    let (steps, seconds) = (results.steps, begun.elapsed().as_secs_f64());
    println!("{summary}, {steps} steps, {seconds:.1} s");
    let Some((_, first)) = results.failed.first_key_value() else {
        return ExitCode::SUCCESS;
    };
    if let (Ok(outcome), false) = (first, args.brief) {
        tell(outcome, args.whole);
    }
    let mut could_run = true;
    for (seed, outcome) in &results.failed {
        match outcome {
            Ok(outcome) => {
                for violation in &outcome.violations {
                    eprintln!("seed {seed}, after {} steps: {violation}", outcome.steps);
                }
            }
            Err(error) => {
                could_run = false;
                eprintln!("seed {seed} could not run: {error:#}");
            }
        }
    }
    let failed: Vec<_> = results.failed.keys().map(u64::to_string).collect();
    eprintln!("failing seeds: {}", failed.join(" "));
    if let Some(seed) = failed.first() {
        eprintln!("Repeat: simulate --from {seed} --seeds 1");
    }
    if could_run {
        ExitCode::FAILURE
    } else {
        ExitCode::from(COULD_NOT_RUN)
    }
}
