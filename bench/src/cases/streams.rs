//! Measures a growing number of open event streams on one gateway: memory, and latency of texts.

use std::time::{Duration, Instant};

use clap::Args;
use everturn_tests::{
    arena::{Arena, Latency, Speech},
    crowd::{Crowd, allow_streams, open_and_stop},
    model::{Model, Reply},
};

/// The text of each measurement, which is published word by word.
const WORDS: Speech = Speech {
    pieces: 40,
    every: Duration::from_millis(50),
    bytes: 100,
};
/// Text that gets a reader cut when it has stopped reading: more bytes than the kernel and the gateway buffer for it.
const FLOOD: Speech = Speech {
    pieces: 40,
    every: Duration::from_millis(50),
    bytes: 32 * 1024,
};
/// Number of readers of the conversation that gets `FLOOD`.
const FLOODED: usize = 100;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The most streams. A tenth, a fifth and a half of them are measured as well.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=50_000))]
    streams: u32,
    /// The conversations that the streams are spread over. The text is published in one of them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    conversations: u32,
}

/// Starts the stack and prints a table.
pub(crate) async fn run(options: &Options) {
    let largest = options.streams as usize;
    // The streams of one row may still be open when those of the next row are opened.
    allow_streams(largest + largest / 2);
    let model = Model::start(|_| Reply::text("unused")).await;
    let keys = format!(
        "reader_buffer = 65536\nstall_timeout = \"1s\"\nmax_streams = {}",
        2 * largest
    );
    let arena = Arena::start(model, &keys).await;
    let mut conversations = Vec::new();
    for _ in 0..options.conversations {
        conversations.push(conversation(&arena).await);
    }
    // The first stream allocates what all streams share. It is opened before memory is measured, so that this part is
    // not counted.
    let _first = Crowd::open(arena.address, 1, |_| Arena::path(&conversations[0])).await;
    let before = arena.gateway_bytes();

    println!("streams  conversations  opened in  memory each  latency p50       p99");
    for streams in [largest / 10, largest / 5, largest / 2, largest] {
        row(&arena, &conversations, streams, before).await;
    }
    flood(&arena).await;
}

/// Measures one row of the table. The memory of its streams is the growth of the gateway since `before`, because the
/// gateway gives no memory back to the system between two rows.
async fn row(arena: &Arena, conversations: &[String], streams: usize, before: usize) {
    let begun = Instant::now();
    let path = |number: usize| Arena::path(&conversations[number % conversations.len()]);
    let crowd = Crowd::open(arena.address, streams, path).await;
    let opened = begun.elapsed();
    let bytes = arena.gateway_bytes().saturating_sub(before) / streams;
    let readers = streams.div_ceil(conversations.len());
    let Latency { median, p99 } = arena.speak(&conversations[0], &crowd, readers, WORDS).await;
    println!(
        "{streams:>7}  {:>13}  {:>8.2}s  {:>8} KB  {:>8.1} ms  {:>6.1} ms",
        conversations.len(),
        opened.as_secs_f64(),
        bytes / 1024,
        milliseconds(median),
        milliseconds(p99),
    );
}

/// Measures the latency of readers with and without one more reader that stops reading.
async fn flood(arena: &Arena) {
    let conversation = conversation(arena).await;
    let path = Arena::path(&conversation);
    let crowd = Crowd::open(arena.address, FLOODED, |_| path.clone()).await;
    println!(
        "\n{FLOODED} readers of one conversation, {} KB each time",
        FLOOD.bytes / 1024
    );
    for _ in 0..3 {
        let alone = arena.speak(&conversation, &crowd, FLOODED, FLOOD).await;
        let _stuck = open_and_stop(arena.address, &path).await;
        let beside = arena.speak(&conversation, &crowd, FLOODED, FLOOD).await;
        println!(
            "p99 {:>6.1} ms · with one more that stops reading and is cut {:>6.1} ms",
            milliseconds(alone.p99),
            milliseconds(beside.p99)
        );
    }
}

async fn conversation(arena: &Arena) -> String {
    arena
        .stack
        .client()
        .create_conversation(None)
        .await
        .expect("the gateway answers")
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
