//! Case `first-delta`: the latency of a token from the model to a reader, through the worker, the stream and the
//! gateway. The text of a token is the time when the model sent the token.

use std::{pin::pin, time::Duration};

use clap::Args;
use everturn_tests::{
    FollowedTurn,
    crowd::ages,
    model::{Model, Reply},
};
use futures::{StreamExt, stream};

use crate::{
    measure::{Latencies, Report, Samples},
    world::{BackendChoice, World},
};

/// Time between two tokens: longer than the worker's joining time (`TextWriter`), because every token should travel
/// alone.
const PACE: Duration = Duration::from_millis(25);

/// Number of tokens in an answer.
const TOKENS: usize = 80;

/// Redis is necessary: without Redis, no live text reaches a gateway in a separate process.
const CHOICE: BackendChoice = BackendChoice { embedded: false };

/// Options of the case `first-delta`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of concurrent turns in the second half.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    at_once: u32,
    /// Number of samples.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    samples: u32,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let model = Model::start(|_| Reply::stamps(TOKENS, PACE)).await;
    let world = World::start(CHOICE, model).await;
    listen(&world).await;
    let mut samples = Samples::default();
    for _ in 0..options.samples {
        for (prefix, at_once) in [("", 1), ("loaded_", options.at_once as usize)] {
            let mut latencies = Latencies::default();
            let turns = stream::iter(0..at_once).map(|_| listen(&world));
            let heard: Vec<_> = turns.buffer_unordered(at_once).collect().await;
            heard
                .into_iter()
                .flatten()
                .for_each(|took| latencies.add(took));
            latencies.tell(prefix, &mut samples);
        }
    }
    Report::of("first-delta", samples)
}

/// Runs a turn, and returns the latency of every token.
async fn listen(world: &World) -> Vec<Duration> {
    let client = &world.client;
    let conversation = client.create_conversation(None).await.unwrap();
    let mut frames = pin!(client.follow(&conversation, 0));
    let message = client.submit(&conversation, "Speak.", None).await.unwrap();
    let mut turn = FollowedTurn::of(&message);
    let mut took = Vec::new();
    while let Some(frame) = frames.next().await {
        if frame.event.starts_with("text_") {
            took.extend(ages(frame.data["text"].as_str().unwrap_or_default()));
        }
        if turn.ends_with(&frame) {
            break;
        }
    }
    took
}
