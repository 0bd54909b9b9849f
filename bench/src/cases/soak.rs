//! Case `soak`: many short turns on one worker and one gateway. The case measures the growth of memory, stored rows and
//! Redis keys.

use std::time::Instant;

use clap::Args;
use everturn_tests::soak::{MAX_GROWTH, Mark, Soak, TURNS_EACH};

use crate::measure::{Report, Samples, float};

/// Number of rows of the printed table. Later rows are compared with the first row.
const ROWS: usize = 4;

/// Options of the case `soak`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of turns of the whole measurement. The case reads the memory after every quarter.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(20..=10_000_000))]
    turns: u32,
    /// Number of activities after which the worker renews Temporal's SDK. Default: the worker's default.
    #[arg(long)]
    renew_after_activities: Option<u32>,
}

/// Runs the case and prints a table. Memory and rows per turn must not grow.
pub(crate) async fn run(options: &Options) -> Report {
    let keys = options
        .renew_after_activities
        .map(|number| format!("renew_after_activities = {number}"));
    let mut soak = Soak::start(&keys.unwrap_or_default()).await;
    let quarter = (options.turns as usize / ROWS).next_multiple_of(TURNS_EACH);
    println!("  turns  turns/s  worker MB  gateway MB  rows a turn  Redis keys");
    let mut marks: Vec<Mark> = vec![soak.run_to(TURNS_EACH).await];
    for number in 1..=ROWS {
        let begun = Instant::now();
        let mark = soak.run_to(number * quarter).await;
        let before = marks.last().unwrap_or(&mark);
        let turns = f64::from(u32::try_from(mark.turns - before.turns).unwrap_or(u32::MAX));
        println!(
            "{:>7}  {:>7.1}  {:>9.1}  {:>10.1}  {:>11.2}  {:>10}",
            mark.turns,
            turns / begun.elapsed().as_secs_f64(),
            megabytes(mark.worker_bytes),
            megabytes(mark.gateway_bytes),
            mark.rows_a_turn_since(before),
            mark.keys,
        );
        marks.push(mark);
    }
    report(&marks)
}

/// Compares the last mark with the mark after the first quarter. The mark after the first turns is only the start of
/// the rows per turn.
fn report(marks: &[Mark]) -> Report {
    let (first, last) = (marks[1], marks[ROWS]);
    let worker = growth(first.worker_bytes, last.worker_bytes);
    let gateway = growth(first.gateway_bytes, last.gateway_bytes);
    let most = worker.max(gateway);
    let early = first.rows_a_turn_since(&marks[0]);
    let late = last.rows_a_turn_since(&first);
    let mut samples = Samples::default();
    samples.add("turns", float(last.turns as u64));
    samples.add("rss_growth_pct", most);
    samples.add("worker_growth_pct", worker);
    samples.add("gateway_growth_pct", gateway);
    samples.add("rows_a_turn", late);
    samples.add("redis_keys", float(last.keys));
    Report::of("soak", samples)
        .expect(
            most <= f64::from(MAX_GROWTH),
            format!("memory grew by {most:.1} %, and {MAX_GROWTH} % are allowed"),
        )
        .expect(
            (early - late).abs() < 0.01,
            format!("a turn left {early:.3} rows at first, and then {late:.3}"),
        )
}

#[allow(clippy::cast_precision_loss)]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

/// Returns the growth in percent.
fn growth(before: usize, after: usize) -> f64 {
    (megabytes(after) / megabytes(before) - 1.0) * 100.0
}
