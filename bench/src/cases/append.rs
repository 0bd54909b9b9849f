//! Case `append`: concurrent writers save batches of events through the store, first into a single conversation, then
//! into a conversation per writer.

use std::time::Instant;

use clap::Args;
use everturn_tests::{append::Appender, backends::Backends};
use futures::future::join_all;

use crate::measure::{Latencies, Report, Samples};

/// Content of the message in a batch.
const CONTENT: &str = "A message of about a hundred bytes, as a user writes one who wants something to be looked up for \
                       them.";

/// Options of the case `append`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of writers.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    writers: u32,
    /// Number of batches per writer in a sample.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batches: u32,
    /// Number of samples.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    samples: u32,
}

/// Runs the case on PostgreSQL, with synchronous commits.
pub(crate) async fn run(options: &Options) -> Report {
    let backends = Backends::measured(false).await;
    let store = backends.store().await.expect("PostgreSQL");
    let (mut samples, mut are_stored) = (Samples::default(), true);
    let mut number = 0..;
    let mut begin = async || {
        let id = format!("append-{}", number.next().unwrap_or_default());
        Appender::begin(&store, &id).await
    };
    for _ in 0..options.samples {
        let one = vec![begin().await];
        are_stored &= write(options, &one, "one", &mut samples).await;
        let mut many = Vec::new();
        for _ in 0..options.writers {
            many.push(begin().await);
        }
        are_stored &= write(options, &many, "many", &mut samples).await;
    }
    Report::of("append", samples).expect(are_stored, "an event is lost or is there twice")
}

/// Runs the writers concurrently, spread over the given conversations. Each batch takes a message that was queued before
/// the measurement. Returns true when every conversation has the expected length at the end.
async fn write(options: &Options, to: &[Appender], name: &str, samples: &mut Samples) -> bool {
    let queued = join_all((0..options.writers as usize).map(|writer| async move {
        let mut messages = Vec::new();
        for _ in 0..options.batches {
            messages.push(to[writer % to.len()].queue(CONTENT).await);
        }
        messages
    }));
    let queued = queued.await;
    let begun = Instant::now();
    let writers = queued.into_iter().enumerate().map(|(writer, messages)| {
        let conversation = &to[writer % to.len()];
        async move {
            let mut saves = Vec::new();
            for message in messages {
                let begun = Instant::now();
                let last_sequence = conversation.take(message).await;
                saves.push((begun.elapsed(), last_sequence));
            }
            saves
        }
    });
    let saves = join_all(writers).await.concat();
    let seconds = begun.elapsed().as_secs_f64();
    let batches = f64::from(options.writers) * f64::from(options.batches);
    samples.add(format!("batches_per_s_{name}"), batches / seconds);
    let mut latencies = Latencies::default();
    for (took, _) in &saves {
        latencies.add(*took);
    }
    latencies.tell(&format!("{name}_"), samples);
    // A turn begins with one event before the batches.
    let each = 1 + saves.len() / to.len();
    let longest = saves.iter().map(|(_, last_sequence)| *last_sequence).max();
    longest.is_some_and(|longest| longest as usize == each)
}
