//! A cancel while the model streams: the time from the request until the connection to the provider is closed.

use std::time::{Duration, Instant};

use clap::Args;
use everturn_tests::model::{Model, Reply};

use crate::{
    measure::{Latencies, Report, Samples},
    world::{Place, World},
};

/// The model speaks so often. It notices at its next word that nobody listens.
const PACE: Duration = Duration::from_millis(1);

/// Number of words: so many are said in [`LIMIT`]. The model drops those that are left before it counts the closed
/// connection, and a million of them would take longer than the cancel.
const WORDS: usize = 60_000;

/// Number of words that are said before the cancel comes.
const WORDS_BEFORE: u32 = 50;

/// A cancel that takes longer has been lost.
const LIMIT: Duration = Duration::from_mins(1);

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of cancels.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    cancels: u32,
    #[command(flatten)]
    place: Place,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let words = || (0..WORDS).map(|_| "word ".to_owned()).collect();
    let model = Model::start(move |_| Reply::pieces(words(), PACE)).await;
    let world = World::start(options.place, model).await;
    let mut latencies = Latencies::default();
    for _ in 0..options.cancels {
        latencies.add(cancel(&world).await);
    }
    let mut samples = Samples::default();
    latencies.tell("", &mut samples);
    Report::of("cancel", samples)
}

/// Cancels a turn whose model has begun to speak. Without a Redis, a gateway does not hear what it says, so the model is
/// asked.
async fn cancel(world: &World) -> Duration {
    let (client, model) = (&world.client, &world.stack.model);
    let before = model.abandoned();
    model.forget_requests();
    let conversation = client.create_conversation(None).await.unwrap();
    client.submit(&conversation, "Speak.", None).await.unwrap();
    while model.requests().is_empty() {
        tokio::time::sleep(PACE).await;
    }
    tokio::time::sleep(WORDS_BEFORE * PACE).await;
    let begun = Instant::now();
    client.cancel(&conversation).await.unwrap();
    while model.abandoned() == before {
        assert!(
            begun.elapsed() < LIMIT,
            "the cancel of {conversation} is lost"
        );
        tokio::time::sleep(PACE).await;
    }
    begun.elapsed()
}
