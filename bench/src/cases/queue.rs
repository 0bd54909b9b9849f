//! Case `queue`: many messages wait in one conversation. The case counts the turns per second.

use std::{pin::pin, time::Instant};

use clap::Args;
use everturn_client::GatewayClient;
use everturn_tests::model::{Model, Reply};
use futures::StreamExt;

use crate::{
    measure::{Report, Samples},
    world::{BackendChoice, TurnKind, World},
};

/// Options of the case `queue`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of waiting messages.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=100))]
    messages: u32,
    /// Number of samples.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    samples: u32,
    #[command(flatten)]
    choice: BackendChoice,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let model = Model::start(|_| Reply::text("A short answer."));
    let world = World::start(options.choice, model.await).await;
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

/// Sends the messages without a pause, and follows the stream until the last turn ends.
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
