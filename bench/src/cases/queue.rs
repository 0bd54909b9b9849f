//! Messages that wait in one conversation: how fast one turn follows the other.

use std::{pin::pin, time::Instant};

use clap::Args;
use everturn_client::GatewayClient;
use everturn_tests::model::{Model, Reply};
use futures::StreamExt;

use crate::{
    measure::{Report, Samples},
    world::{Place, TurnKind, World},
};

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of messages that wait.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=100))]
    messages: u32,
    /// Number of samples.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    samples: u32,
    #[command(flatten)]
    place: Place,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let model = Model::start(|_| Reply::text("A short answer."));
    let world = World::start(options.place, model.await).await;
    world.turn(TurnKind::Inline).await;
    let mut samples = Samples::default();
    for _ in 0..options.samples {
        let begun = Instant::now();
        converse(&world.client, options.messages).await;
        let took = begun.elapsed().as_secs_f64();
        samples.add("turns_per_s", f64::from(options.messages) / took);
    }
    Report::of("queue", samples)
}

/// Sends all messages at once, and follows the stream until the turn of the last one has ended.
async fn converse(client: &GatewayClient, messages: u32) {
    let conversation = client.create_conversation(None).await.unwrap();
    for number in 0..messages {
        let content = format!("Message {number}.");
        client.submit(&conversation, &content, None).await.unwrap();
    }
    let frames = client.follow(&conversation, 0);
    let ends = frames.filter(|frame| futures::future::ready(frame.event == "complete"));
    let mut ends = pin!(ends);
    for _ in 0..messages {
        ends.next().await.unwrap();
    }
}
