//! Case `scale`: thousands of turns in a model call at the same time, on one gateway and two workers. Every model speaks a
//! word a second. The case measures processor time, memory and queries while the models only speak. Then the
//! workflows of some turns are terminated, and a table is locked.
//!
//! - `calls`: the model, and the number of calls of each turn
//! - `fleet`: the gateway and the two workers, and what they use
//! - `verdict`: the figures and the aims

mod calls;
mod fleet;
mod verdict;

use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use everturn_tests::crowd::allow_streams;
use futures::{StreamExt, TryStreamExt, stream};

use self::{
    calls::{Calls, message},
    fleet::Fleet,
    verdict::Verdict,
};
use crate::measure::Report;

/// Turns that start in a second, unless `--ramp` says otherwise: a start takes tens of milliseconds of a processor.
const STARTS_A_SECOND: u32 = 20;

/// Requests to the gateway at the same time.
const POSTING: usize = 32;

/// The time for which a table is locked.
const LOCKED: Duration = Duration::from_secs(10);

/// The longest wait for a terminated turn.
const BACK_WITHIN: Duration = Duration::from_mins(2);

/// The most time beyond the time of the calls until every turn has ended.
const ENDS_WITHIN: Duration = Duration::from_mins(10);

/// The pause between two looks at a condition.
const LOOK: Duration = Duration::from_millis(250);

/// Options of the case `scale`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of turns at the same time. Each turn needs a connection, and a process may have 20,000 files.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=18_000))]
    turns: u32,
    /// Time for which every model still speaks after the last turn has started, in seconds.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(20..=1_800))]
    seconds: u32,
    /// Time over which the turns start, in seconds. Default: 20 turns a second.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_800))]
    ramp: Option<u32>,
}

impl Options {
    fn ramp(&self) -> Duration {
        let ramp = self.ramp.unwrap_or(self.turns.div_ceil(STARTS_A_SECOND));
        Duration::from_secs(ramp.into())
    }

    fn speaking(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> anyhow::Result<Report> {
    allow_streams(options.turns as usize + POSTING);
    let calls = Calls::new(options.ramp(), options.speaking());
    let fleet = Fleet::start(&calls, options.turns).await?;
    let begun = Instant::now();
    calls.begin();
    let conversations = post(&fleet, options).await?;
    let mut verdict = Verdict::of(options.turns, options.seconds);
    let all_speak = async || fleet.speaking() >= options.turns as usize;
    // Without every turn in flight, the case still measures the turns that are in flight.
    until(options.speaking() / 2, all_speak).await;
    verdict.in_flight(fleet.speaking(), begun.elapsed());
    eprintln!("bench: {} turns are in flight", fleet.speaking());
    let window = (options.speaking() / 5).min(Duration::from_mins(1));
    verdict.streaming(&fleet.measure(window).await);
    verdict.back(terminate(&fleet, &calls, &conversations).await);
    fleet.lock(LOCKED).await?;
    verdict.buried(fleet.buried());
    let limit = options.speaking() + ENDS_WITHIN;
    let ended = until(limit, async || fleet.running().await == Some(0)).await;
    ensure!(
        ended,
        "turns still run {limit:?} after the last measurement"
    );
    verdict.ended(fleet.completed().await?, begun.elapsed());
    verdict.paid_twice(calls.paid_twice(TERMINATED));
    verdict.memory(fleet.peak_worker_bytes());
    Ok(verdict.report())
}

/// The first turns, whose workflows are terminated: some, because the reconciler looks at a conversation every 20 s.
const TERMINATED: u32 = 5;

/// Starts the turns, evenly over the ramp. Returns the conversations in the order of the turns.
async fn post(fleet: &Fleet, options: &Options) -> anyhow::Result<Vec<String>> {
    let (begun, every) = (Instant::now(), options.ramp() / options.turns);
    stream::iter(0..options.turns)
        .map(|number| async move {
            tokio::time::sleep_until((begun + every * number).into()).await;
            fleet.post(&message(number)).await
        })
        .buffered(POSTING)
        .try_collect()
        .await
}

/// Terminates the workflows of some turns. Returns the time until each turn has called the model again; `None` when a
/// turn is lost.
async fn terminate(fleet: &Fleet, calls: &Calls, conversations: &[String]) -> Option<Duration> {
    let begun = Instant::now();
    for conversation in conversations.iter().take(TERMINATED as usize) {
        fleet.terminate(conversation).await;
    }
    let are_back = async || (0..TERMINATED).all(|turn| calls.of(turn) > 1);
    let are_back = until(BACK_WITHIN, are_back).await;
    are_back.then(|| begun.elapsed())
}

/// Waits for a condition, for `limit` at the most. Returns whether the condition holds.
async fn until(limit: Duration, mut condition: impl AsyncFnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        if condition().await {
            return true;
        }
        tokio::time::sleep(LOOK).await;
    }
    false
}
