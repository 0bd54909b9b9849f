//! Case `fanout`: many readers on one gateway, first of one conversation, then of many. The case measures memory per
//! reader, the latency of a text, and a storm: the time until every reader has caught up after a simultaneous
//! reconnect.

use std::time::{Duration, Instant};

use clap::Args;
use everturn_tests::{
    append::Appender,
    arena::{Arena, Latency, Speech},
    crowd::{Crowd, allow_streams, open_and_stop},
    model::{Model, Reply},
    wait,
};
use futures::{StreamExt, stream};

use crate::measure::{Report, Samples, float};

/// Text of a measurement, published word by word.
const WORDS: Speech = Speech {
    pieces: 40,
    every: Duration::from_millis(50),
    bytes: 100,
};

/// Text that makes the gateway cut a reader that stopped reading: more bytes than the buffers of the kernel and the
/// gateway.
const FLOOD: Speech = Speech {
    pieces: 40,
    every: Duration::from_millis(50),
    bytes: 32 * 1024,
};

/// Number of readers of the conversation with the text `FLOOD`.
const FLOODED: usize = 100;

/// Number of measurements with the text `FLOOD`.
const FLOODS: usize = 3;

/// Number of messages per conversation during the readers' absence.
const MISSED: usize = 3;

/// Number of conversations to prepare concurrently.
const PREPARING: usize = 16;

/// An event not received after this time counts as lost.
const LOST_AFTER: Duration = Duration::from_mins(1);

/// Options of the case `fanout`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of readers.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=50_000))]
    readers: u32,
    /// Number of conversations in the second part. In the first part, every reader reads a single conversation.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(2..=50_000))]
    conversations: u32,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let readers = options.readers as usize;
    // Closed streams may still be open in the gateway when the storm's streams open.
    allow_streams(2 * readers + FLOODED);
    let mut samples = Samples::default();
    samples.add("readers", float(readers as u64));
    let lost_of_one = one(readers, &mut samples).await;
    let arena = arena(readers).await;
    let lost_of_many = crowd(
        &arena,
        options.conversations as usize,
        readers,
        "many_",
        &mut samples,
    )
    .await;
    let lost = lost_of_one + lost_of_many;
    samples.add("lost", float(lost));
    Report::of("fanout", samples).expect(lost == 0, format!("{lost} frames are lost"))
}

/// Measures the readers of one conversation. Returns the number of lost frames.
async fn one(readers: usize, samples: &mut Samples) -> u64 {
    let arena = arena(readers).await;
    let lost = crowd(&arena, 1, readers, "", samples).await;
    flood(&arena, samples).await;
    lost
}

/// Starts a gateway. A gateway returns no memory to the system, therefore every crowd needs a fresh gateway.
async fn arena(readers: usize) -> Arena {
    let model = Model::start(|_| Reply::text("unused")).await;
    let keys = format!(
        "reader_buffer = 65536\nstall_timeout = \"1s\"\nmax_streams = {}",
        2 * (readers + FLOODED)
    );
    Arena::measured(model, &keys).await
}

/// Measures readers spread over the given number of conversations. Returns the number of lost frames.
async fn crowd(
    arena: &Arena,
    conversations: usize,
    readers: usize,
    prefix: &str,
    samples: &mut Samples,
) -> u64 {
    let mut add = |figure: &str, value: f64| samples.add(format!("{prefix}{figure}"), value);
    let conversations: Vec<_> = stream::iter(0..conversations.min(readers))
        .map(|_| conversation(arena))
        .buffer_unordered(PREPARING)
        .collect()
        .await;
    // The first stream allocates the shared memory of all streams. A stream opened before the measurement keeps the
    // shared memory out of the result.
    drop(Crowd::open(arena.address, 1, |_| Arena::path(&conversations[0])).await);
    let before = arena.gateway_bytes();
    let begun = Instant::now();
    let path = |number: usize| Arena::path(&conversations[number % conversations.len()]);
    let mut crowd = Crowd::open(arena.address, readers, path).await;
    add("opened_s", begun.elapsed().as_secs_f64());
    let kb_each = || {
        let bytes = arena.gateway_bytes().saturating_sub(before) / readers;
        float(bytes as u64) / 1024.0
    };
    add("idle_kb_per_reader", kb_each());
    let Latency { median, p99, lost } = arena.speak(&conversations, &crowd, readers, WORDS).await;
    add("p50_ms", milliseconds(median));
    add("p99_ms", milliseconds(p99));
    // Readers may hold larger buffers after a text.
    add("kb_per_reader", kb_each());
    let Storm {
        took,
        lost: lost_in_storm,
    } = storm(arena, &conversations, &mut crowd, readers).await;
    add("storm_s", took.as_secs_f64());
    lost as u64 + lost_in_storm
}

/// Outcome of a simultaneous reconnect of the readers.
struct Storm {
    /// Time until every reader has caught up.
    took: Duration,
    /// Number of frames missing or received twice.
    lost: u64,
}

/// Closes every reader, saves events, and reopens every reader at once. A reader must get the missed events and the
/// text in progress.
async fn storm(
    arena: &Arena,
    conversations: &[String],
    crowd: &mut Crowd,
    readers: usize,
) -> Storm {
    crowd.close();
    let store = &arena.stack.store().await;
    let saved: Vec<_> = stream::iter(conversations)
        .map(|id| async move {
            let turn = Appender::begin(store, id).await;
            for _ in 0..MISSED {
                turn.append("A message that the readers have missed.").await;
            }
            turn.end().await
        })
        .buffer_unordered(PREPARING)
        .collect()
        .await;
    let last = saved.into_iter().max().unwrap_or_default();
    crowd.take_latencies();
    let begun = Instant::now();
    crowd.come_back(arena.address).await;
    let caught_up = wait::until("all readers have caught up", || async {
        (crowd.missing(last) == 0 && crowd.latencies() >= readers).then_some(())
    });
    let _in_time = tokio::time::timeout(LOST_AFTER, caught_up).await;
    let took = begun.elapsed();
    let texts = readers.saturating_sub(crowd.take_latencies().len());
    Storm {
        took,
        lost: crowd.missing(last) + crowd.sight().misplaced + texts as u64,
    }
}

/// Measures the latency of readers, first alone and then beside a reader that stopped reading.
async fn flood(arena: &Arena, samples: &mut Samples) {
    let conversations = [conversation(arena).await];
    let path = Arena::path(&conversations[0]);
    let crowd = Crowd::open(arena.address, FLOODED, |_| path.clone()).await;
    for _ in 0..FLOODS {
        let alone = arena.speak(&conversations, &crowd, FLOODED, FLOOD).await;
        let _stuck = open_and_stop(arena.address, &path).await;
        let beside = arena.speak(&conversations, &crowd, FLOODED, FLOOD).await;
        samples.add("flood_p99_ms", milliseconds(alone.p99));
        samples.add("flood_beside_stuck_p99_ms", milliseconds(beside.p99));
    }
}

async fn conversation(arena: &Arena) -> String {
    let client = arena.stack.client();
    client
        .create_conversation(None)
        .await
        .expect("the gateway answers")
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
