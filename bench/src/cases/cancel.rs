//! Case `cancel`: the time from a cancel, while the model streams, until the connection to the model's provider is
//! closed.

use std::time::{Duration, Instant};

use clap::Args;
use everturn_tests::model::{Model, Reply};

use crate::{
    measure::{Latencies, Report, Samples},
    world::{BackendChoice, World},
};

/// Time between two words of the model. The model notices a closed connection at the next word.
const PACE: Duration = Duration::from_millis(1);

/// Number of words, enough for [`LIMIT`]. More words would falsify the result, because the model drops the remaining
/// words before counting the closed connection.
const WORDS: usize = 60_000;

/// Number of words before the cancel.
const WORDS_BEFORE: u32 = 50;

/// A cancel that takes longer counts as lost.
const LIMIT: Duration = Duration::from_mins(1);

/// Options of the case `cancel`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of cancels.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    cancels: u32,
    #[command(flatten)]
    choice: BackendChoice,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let words = || (0..WORDS).map(|_| "word ".to_owned()).collect();
    let model = Model::start(move |_| Reply::pieces(words(), PACE)).await;
    let world = World::start(options.choice, model).await;
    let mut latencies = Latencies::default();
    for _ in 0..options.cancels {
        latencies.add(cancel(&world).await);
    }
    let mut samples = Samples::default();
    latencies.tell("", &mut samples);
    Report::of("cancel", samples)
}

/// Cancels a turn after the model has begun to stream. The start is observed at the model, because a gateway without
/// Redis gets no live text.
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
