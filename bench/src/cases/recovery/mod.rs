//! Case `recovery`: kills with -9 the worker of a running turn, while a second worker is ready. The case measures the
//! time until the turn ends. Afterwards, a worker is paused and resumed, and the heartbeats of a long LLM call are
//! counted.
//!
//! - `turn`: the turn, the moments of a kill, and the expected events
//! - `workers`: the two workers

mod turn;
mod workers;

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use clap::Args;
use everturn_tests::{FollowedTurn, model::Model};
use futures::StreamExt;

use self::{
    turn::{ANSWER, Damage, LONG, LONG_CALL, Moment, Progress, script},
    workers::Workers,
};
use crate::measure::{Latencies, Report, Samples, float};

/// Duration of a worker's pause.
const STOPPED: Duration = Duration::from_secs(20);

/// Time for a resumed worker to do damage before the check.
const WOKEN: Duration = Duration::from_secs(5);

/// Length of the window in which heartbeats are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// Interval between readings of Temporal's counter.
const SAMPLE: Duration = Duration::from_millis(250);

/// Options of the case `recovery`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of workers to kill, sequentially.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    kills: u32,
}

/// Runs the case with the default configuration.
pub(crate) async fn run(options: &Options) -> Report {
    let mut workers = Workers::start(Model::start(script).await).await;
    let (mut samples, mut damage) = (Samples::default(), Damage::default());
    let mut latencies = Latencies::default();
    for number in 0..options.kills as usize {
        let moment = Moment::ALL[number % Moment::ALL.len()];
        let took = kill(&mut workers, moment, &mut damage).await;
        samples.add(moment.figure(), took.as_secs_f64());
        latencies.add(took);
    }
    let (median, most) = latencies.median_and_most();
    samples.add("runs", f64::from(options.kills));
    samples.add("median_s", median.as_secs_f64());
    samples.add("max_s", most.as_secs_f64());
    let heartbeats = heartbeats(&workers).await;
    samples.add("heartbeats_in_10_s", float(heartbeats));
    let took = stop(workers, &mut damage).await;
    samples.add("stopped_s", took.as_secs_f64());
    samples.add("lost", float(damage.lost));
    samples.add("doubled", float(damage.doubled));
    let Damage { lost, doubled } = damage;
    Report::of("recovery", samples)
        .expect(lost == 0, format!("something is lost in {lost} turns"))
        .expect(
            doubled == 0,
            format!("something is there twice in {doubled} turns"),
        )
}

/// Kills the worker of a running turn. Returns the time from the kill to the end of the turn, without the time of the
/// model and the tools.
async fn kill(workers: &mut Workers, moment: Moment, damage: &mut Damage) -> Duration {
    let client = workers.client.clone();
    let conversation = client.create_conversation(None).await.unwrap();
    let message = moment.message();
    let message = client.submit(&conversation, message, None).await.unwrap();
    let mut frames = pin!(client.follow(&conversation, 0));
    let mut turn = FollowedTurn::of(&message);
    let mut progress = Progress::default();
    let mut killed = None;
    while let Some(frame) = frames.next().await {
        if killed.is_none() && progress.is_at(moment, &frame) {
            killed = Some(Instant::now());
            workers.take_speaker().kill().await;
        }
        if turn.ends_with(&frame) {
            break;
        }
    }
    let killed = killed.expect("the moment has come");
    let took = killed.elapsed();
    let others = workers.stack.model.spoken_since(killed) + moment.tools_take();
    let paid = workers.stack.model.requests().len();
    damage.look(&workers.stack.events(&conversation).await);
    damage.look_at_calls(paid, moment);
    workers.stack.model.forget_requests();
    workers.add().await;
    took.saturating_sub(others)
}

/// Pauses the worker of a running turn. Returns the time from the pause to the end of the turn, without the time of the
/// model.
async fn stop(mut workers: Workers, damage: &mut Damage) -> Duration {
    let client = workers.client.clone();
    let moment = Moment::Answer;
    let conversation = client.create_conversation(None).await.unwrap();
    let message = moment.message();
    let message = client.submit(&conversation, message, None).await.unwrap();
    let mut frames = pin!(client.follow(&conversation, 0));
    let mut turn = FollowedTurn::of(&message);
    let mut progress = Progress::default();
    while let Some(frame) = frames.next().await {
        let _not_yet = turn.ends_with(&frame);
        if progress.is_at(moment, &frame) {
            break;
        }
    }
    let (at, worker) = (Instant::now(), workers.take_speaker());
    worker.pause();
    let ended = async {
        while let Some(frame) = frames.next().await {
            if turn.ends_with(&frame) {
                break;
            }
        }
        at.elapsed()
            .saturating_sub(workers.stack.model.spoken_since(at))
    };
    let wakes = async {
        tokio::time::sleep(STOPPED).await;
        worker.resume();
    };
    let (took, ()) = tokio::join!(ended, wakes);
    // Both workers continue: with the conversation's next turn, and with the unfinished work of the resumed worker.
    client.submit(&conversation, ANSWER, None).await.unwrap();
    workers.stack.ended(&conversation, 2).await;
    tokio::time::sleep(WOKEN).await;
    worker.terminate().await;
    // The next turn has three events: message, answer and end. An interrupted LLM call may have been repeated several
    // times.
    let mut events = workers.stack.events(&conversation).await;
    damage.look_at_answer(&events.split_off(events.len().min(Damage::EVENTS)));
    damage.look(&events);
    took
}

/// Returns the maximum number of heartbeats of a long LLM call within [`WINDOW`].
async fn heartbeats(workers: &Workers) -> u64 {
    let client = &workers.client;
    let conversation = client.create_conversation(None).await.unwrap();
    client.submit(&conversation, LONG, None).await.unwrap();
    let (begun, temporal) = (Instant::now(), workers.stack.temporal);
    let mut counts = Vec::new();
    while begun.elapsed() < LONG_CALL {
        let count = temporal.calls(&["RecordActivityTaskHeartbeat"]).await;
        counts.push((Instant::now(), count));
        tokio::time::sleep(SAMPLE).await;
    }
    workers.stack.ended(&conversation, 1).await;
    workers.stack.model.forget_requests();
    most_within(&counts, WINDOW)
}

/// Returns the largest growth of a counter within the window.
fn most_within(counts: &[(Instant, u64)], window: Duration) -> u64 {
    let grew = counts.iter().enumerate().map(|(number, (from, before))| {
        let within = counts[number..].iter();
        let within = within.take_while(|(at, _)| at.duration_since(*from) <= window);
        within.last().map_or(0, |(_, count)| count - before)
    });
    grew.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_within_a_window() {
        let begun = Instant::now();
        let counts: Vec<_> = [(0, 5), (4, 6), (9, 8), (14, 9), (30, 20)]
            .map(|(seconds, count)| (begun + Duration::from_secs(seconds), count))
            .into();
        assert_eq!(most_within(&counts, Duration::from_secs(10)), 3);
        assert_eq!(most_within(&counts, Duration::from_secs(16)), 11);
        assert_eq!(most_within(&[], Duration::from_secs(16)), 0);
    }
}
