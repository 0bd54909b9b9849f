//! Thousands of streams on one gateway: a real one, with a real worker and Redis, read over raw TCP. The numbers up to
//! 10 000 streams are those of `bench fanout`.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use everturn_tests::{
    arena::{Arena, Speech},
    crowd::{Crowd, allow_streams, open_and_stop, percentile},
    model::{Model, Reply},
    stack::frames_until,
    wait,
};
use serde_json::Value;
use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};

const STREAMS: usize = 2000;
/// Readers of the conversation that one reader stops reading.
const BESIDE: usize = 100;
/// Memory of an idle stream at the most; a debug build needs more than a release.
const MAX_BYTES: usize = 50 * 1024;
/// Rounds with and without such a reader that are compared by their medians, at the least and at the most.
const MIN_ROUNDS: usize = 3;
const ROUNDS: usize = 9;
/// More than the buffers of the kernel and of the gateway hold for one reader, in one round.
const SPEECH: Speech = Speech {
    pieces: 40,
    every: Duration::from_millis(20),
    bytes: 32 * 1024,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_streams_on_one_gateway() {
    allow_streams(2 * STREAMS);
    let model = Model::start(|_| Reply::tokens(60)).await;
    let arena = Arena::start(model, "reader_buffer = 65536\nstall_timeout = \"1s\"").await;
    let client = arena.stack.client();
    let conversation = client.create_conversation(None).await.unwrap();

    // One stream for what the first one costs anybody.
    let first = Crowd::open(arena.address, 1, |_| Arena::path(&conversation)).await;
    let before = arena.gateway_bytes();
    let mut crowd = Crowd::open(arena.address, STREAMS, |_| Arena::path(&conversation)).await;
    let each = (arena.gateway_bytes() - before) / STREAMS;
    println!("{} KB for each of {STREAMS} idle streams", each / 1024);
    assert!(each < MAX_BYTES, "{each} bytes for each stream");

    client.submit(&conversation, "speak", None).await.unwrap();
    let events = arena.stack.ended(&conversation, 1).await;
    crowd.saw(u32::try_from(events.len()).unwrap()).await;
    let sight = crowd.sight();
    assert_eq!(
        (sight.sequences, sight.ended),
        (1, 0),
        "all have got the same frames: {sight:?}"
    );
    assert!(sight.min_texts > 2, "{sight:?}");
    assert_eq!(first.sight().last_events, sight.last_events);
    // Whoever comes now gets the same events.
    let late = frames_until(&client, &conversation, 0, |frame| frame.event == "complete").await;
    assert_eq!(
        late.iter().filter(|frame| frame.id.is_some()).count(),
        events.len()
    );

    a_reader_that_stops_is_cut_and_nobody_notices(&arena).await;
    assert_eq!(crowd.sight().ended, 0);

    // All of them go, miss a turn, and come back at once.
    crowd.close();
    client.submit(&conversation, "speak", None).await.unwrap();
    let events = arena.stack.ended(&conversation, 2).await;
    crowd.come_back(arena.address).await;
    crowd.saw(u32::try_from(events.len()).unwrap()).await;
    assert_eq!(crowd.sight().misplaced, 0);
}

async fn a_reader_that_stops_is_cut_and_nobody_notices(arena: &Arena) {
    let conversation = arena
        .stack
        .client()
        .create_conversation(None)
        .await
        .unwrap();
    let path = Arena::path(&conversation);
    let crowd = Crowd::open(arena.address, BESIDE, |_| path.clone()).await;
    let conversations = [conversation];
    let round = async || {
        let spoken = arena.speak(&conversations, &crowd, BESIDE, SPEECH).await;
        assert_eq!(spoken.lost, 0);
        spoken
    };
    round().await; // until everything is warm
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    // In turn, so that what else the machine does is in both; and again, when it did much in one of them.
    for _ in 0..ROUNDS {
        alone.push(round().await.p99);
        let stuck = open_and_stop(arena.address, &path).await;
        beside.push(round().await.p99);
        is_cut(stuck).await;
        println!("p99 {alone:?} alone, {beside:?} beside a reader that stopped");
        let limit = (median(&alone) * 3 / 2).max(median(&alone) + Duration::from_millis(10));
        if alone.len() >= MIN_ROUNDS && median(&beside) <= limit {
            assert_eq!(crowd.sight().ended, 0);
            return;
        }
    }
    panic!("p99 {beside:?} beside a reader that stopped, {alone:?} without");
}

fn median(latencies: &[Duration]) -> Duration {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    percentile(&sorted, 50)
}

/// Reads what the kernel still holds, which is not all that was said, and the end behind it.
async fn is_cut(mut stuck: TcpStream) {
    let mut bytes = Vec::new();
    // An end or an error: both are the gateway's.
    let _cut = timeout(Duration::from_mins(3), stuck.read_to_end(&mut bytes))
        .await
        .expect("it was not cut");
    assert!(
        bytes.len() < SPEECH.pieces * SPEECH.bytes,
        "it has got everything: {} bytes",
        bytes.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_survive_the_stop_of_their_gateway() {
    let model = Model::start(|_| Reply::tokens(20)).await;
    let arena = Arena::start(model, "retry_min = \"50ms\"\nretry_max = \"500ms\"").await;
    let conversation = arena
        .stack
        .client()
        .create_conversation(None)
        .await
        .unwrap();
    let crowd = Crowd::open(arena.address, 50, |_| Arena::path(&conversation)).await;
    let Arena { stack, gateway, .. } = arena;
    assert_eq!(gateway.terminate().await, Some(0));
    wait::until("all streams have ended", || async {
        (crowd.sight().ended == 50).then_some(())
    })
    .await;
    // Told another time each, so their frames differ.
    assert!(crowd.sight().sequences > 1);
    let _other = stack.gateway().await;
    let conversation: Value = stack.get(&format!("/conversations/{conversation}")).await;
    assert_eq!(conversation["last_sequence"], 0);
}
