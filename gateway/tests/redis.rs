//! Readers of several gateways while Redis is killed, flushed and frozen under a running turn: no event is lost or
//! doubled, and every reader ends with exactly what a fresh replay shows (invariant 7, fenced
//! deltas; invariant 8, a cursor never expires).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use everturn_gateway::{
    GatewayConfig,
    live::{Cursor, LiveFrame, LiveHub, LiveReader},
};
use everturn_proto::{LogId, SealedStep};
use everturn_store::{Access, Conversations};
use everturn_stream::{
    Announcement, Part, Published, RedisStream, RedisStreamOptions, StreamWriter, TextKey,
    TextWriter,
};
use everturn_test_servers::redis::Redis;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::support::{
    store::TestStore,
    world::{key, piece},
};

/// A gateway's interval; short, so that the test is.
const INTERVAL: Duration = Duration::from_millis(300);

/// What a reader has at the end: the events in the order they came, and the texts still open.
#[derive(Default)]
struct Screen {
    events: Vec<(u32, String)>,
    texts: BTreeMap<TextKey, (u32, String)>,
    deltas: usize,
}

/// A process of its own that serves readers.
#[derive(Clone)]
struct Gateway {
    store: TestStore,
    hub: LiveHub,
}

impl Gateway {
    fn new(store: &TestStore, server: &Redis) -> Self {
        let stream = RedisStream::connect(&server.url(), RedisStreamOptions::default()).unwrap();
        let config = GatewayConfig {
            poll_interval: INTERVAL,
            ..GatewayConfig::default()
        };
        let hub = LiveHub::new(Arc::new(store.clone()), Arc::new(stream), &config);
        Self {
            store: store.clone(),
            hub,
        }
    }

    async fn reader(&self, cursor: u32) -> LiveReader {
        let access = Access::tenant("default");
        let found = self.store.conversation(&access, "c").await.unwrap();
        self.hub.open(access, &found.unwrap(), Cursor::at(cursor))
    }

    /// A reader that stays until the turn's end.
    fn read(&self) -> JoinHandle<Screen> {
        let gateway = self.clone();
        tokio::spawn(async move {
            let mut reader = gateway.reader(0).await;
            let mut screen = Screen::default();
            while screen
                .events
                .last()
                .is_none_or(|(_, event_type)| event_type != "complete")
            {
                let next = timeout(Duration::from_mins(2), reader.next()).await;
                screen.take(next.expect("nothing in 30 s").unwrap().frame.clone());
            }
            screen
        })
    }
}

impl Screen {
    /// Panics on everything that a reader must not see.
    fn take(&mut self, frame: LiveFrame) {
        match frame {
            LiveFrame::Reset { .. } => panic!("the log is the same"),
            LiveFrame::Event(event) => {
                let data = event.event_data.unwrap().to_value();
                self.texts.retain(|key, _| {
                    data["step"]
                        .as_u64()
                        .is_some_and(|step| u64::from(key.step) > step)
                });
                self.events.push((event.sequence_number, event.event_type));
            }
            LiveFrame::TextStart(text) => {
                let older = self.texts.insert(text.key, (text.generation, text.text));
                assert!(older.is_none_or(|(generation, _)| generation <= text.generation));
            }
            LiveFrame::TextDelta(piece) => {
                let (generation, text) = self
                    .texts
                    .get_mut(&piece.key)
                    .expect("a delta without its text");
                assert_eq!((*generation, text.len()), (piece.generation, piece.offset));
                text.push_str(&piece.text);
                self.deltas += 1;
            }
            LiveFrame::TextEnd { .. } | LiveFrame::Notice(_) => {}
        }
    }
}

/// The worker's side of a turn: steps of a spoken text, saved and announced. The first try of each step dies.
async fn work(store: &TestStore, url: &str) {
    let log = store.log_of("c").id;
    let worker = Arc::new(RedisStream::connect(url, RedisStreamOptions::default()).unwrap());
    let dead = Arc::new(RedisStream::connect(url, RedisStreamOptions::default()).unwrap());
    for step in 0..6 {
        let late = TextWriter::new(dead.clone(), log.clone(), "m", "run", step, step * 2 + 1);
        late.push(Part::Text, "from a worker thought dead ");
        sleep(Duration::from_millis(50)).await;
        let writer = TextWriter::new(worker.clone(), log.clone(), "m", "run", step, step * 2 + 2);
        for number in 0..100 {
            writer.push(Part::Text, &format!("wörd {number} "));
            late.push(Part::Text, "late ");
            sleep(Duration::from_millis(5)).await;
        }
        writer.finish().await;
        let data = format!(r#"{{"agent_execution_id":"run","step":{step}}}"#);
        let last_sequence = store.append(
            "c",
            "m",
            if step < 5 {
                "thought"
            } else {
                "assistant_message"
            },
            &data,
        );
        // As activities do: an announcement that fails is lost.
        let sealed = vec![SealedStep {
            agent_execution_id: "run".to_owned(),
            step,
        }];
        let _ = worker
            .announce(
                &log,
                Announcement {
                    last_sequence,
                    sealed,
                },
            )
            .await;
        late.finish().await;
    }
    let last_sequence = store.append("c", "m", "complete", r#"{"agent_execution_id":"run"}"#);
    let _ = worker
        .announce(
            &log,
            Announcement {
                last_sequence,
                sealed: Vec::new(),
            },
        )
        .await;
}

/// How many deltas each reader got: two of each gateway from the beginning, one that came after the fault.
async fn live_through(fault: impl AsyncFnOnce(&Redis)) -> Vec<usize> {
    let server = Redis::start().await;
    let store = TestStore::default();
    store.add("c", "default");
    let gateways = [Gateway::new(&store, &server), Gateway::new(&store, &server)];
    let mut readers: Vec<_> = gateways
        .iter()
        .flat_map(|gateway| [gateway.read(), gateway.read()])
        .collect();
    let worker = {
        let (store, url) = (store.clone(), server.url());
        tokio::spawn(async move { work(&store, &url).await })
    };
    sleep(Duration::from_millis(700)).await;
    fault(&server).await;
    readers.push(gateways[0].read());
    worker.await.unwrap();
    let replay = gateways[1].read().await.unwrap();
    assert_eq!(
        replay
            .events
            .iter()
            .map(|(sequence, _)| *sequence)
            .collect::<Vec<_>>(),
        (1..=7).collect::<Vec<_>>()
    );
    let mut deltas = Vec::new();
    for reader in readers {
        let screen = reader.await.unwrap();
        assert_eq!(screen.events, replay.events, "no event is lost or doubled");
        assert!(screen.texts.is_empty(), "{:?}", screen.texts);
        deltas.push(screen.deltas);
    }
    deltas
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_killed() {
    let deltas = live_through(async |server| {
        server.kill().await;
        sleep(Duration::from_secs(1)).await;
        server.start_again().await;
    })
    .await;
    // Live texts come back, also to the reader that came last.
    assert!(deltas.iter().all(|deltas| *deltas > 40), "{deltas:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_killed_for_good() {
    let deltas = live_through(async |server| server.kill().await).await;
    assert!(deltas[..4].iter().all(|deltas| *deltas > 0), "{deltas:?}");
    assert_eq!(deltas[4], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_flushed_in_mid_message() {
    let deltas = live_through(async |server| {
        for _ in 0..10 {
            server.command("FLUSHALL").await.unwrap();
            sleep(Duration::from_millis(170)).await;
        }
    })
    .await;
    // Live texts come back, also to the reader that came last.
    assert!(deltas.iter().all(|deltas| *deltas > 40), "{deltas:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_slow_and_its_subscribers_cut() {
    let deltas = live_through(async |server| {
        server.pause().await;
        sleep(Duration::from_millis(1200)).await;
        server.resume().await;
        server.command("CLIENT KILL TYPE pubsub").await.unwrap();
        server.command("CLIENT PAUSE 400").await.unwrap();
    })
    .await;
    // Live texts come back, also to the reader that came last.
    assert!(deltas.iter().all(|deltas| *deltas > 40), "{deltas:?}");
}

/// Publishes a piece of the first step of an agent execution.
async fn publish(
    (stream, log): &(RedisStream, LogId),
    agent_execution_id: &str,
    generation: u32,
    offset: usize,
    text: &str,
) -> Published {
    let piece = piece(key(agent_execution_id, 0), generation, offset, text);
    stream.publish(log, piece).await.unwrap()
}

/// The agent execution and the generation of the next text that the reader is shown, and the text.
async fn next_text(reader: &mut LiveReader) -> (String, u32, String) {
    let next = timeout(Duration::from_secs(30), reader.next()).await;
    match next.expect("nothing in 30 s").unwrap().frame.clone() {
        LiveFrame::TextStart(text) => (text.key.agent_execution_id, text.generation, text.text),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_flushed_before_a_reader_moves_to_a_gateway_that_knows_only_the_older_generation() {
    let server = Redis::start().await;
    let store = TestStore::default();
    store.add("c", "default");
    store.append("c", "m", "user_message", "{}");
    store.claim("c", "run", 2);
    let gateways = [Gateway::new(&store, &server), Gateway::new(&store, &server)];
    // Patient: this machine has 2 cores, and compilers run on them.
    let options = RedisStreamOptions {
        command_timeout: Duration::from_secs(10),
        ..RedisStreamOptions::default()
    };
    let process = || {
        let stream = RedisStream::connect(&server.url(), options.clone()).unwrap();
        (stream, store.log_of("c").id)
    };
    let (dead, worker) = (process(), process());
    assert_eq!(
        publish(&dead, "run", 1, 0, "old").await,
        Published::Accepted
    );
    assert_eq!(
        publish(&worker, "run", 2, 0, "new").await,
        Published::Accepted
    );
    let mut reader = gateways[0].reader(1).await;
    let text = |execution: &str, generation, text: &str| {
        (execution.to_owned(), generation, text.to_owned())
    };
    assert_eq!(next_text(&mut reader).await, text("run", 2, "new"));

    // The worker that was taken for dead is the first to write again, and nobody there knows better.
    server.command("FLUSHALL").await.unwrap();
    assert_eq!(
        publish(&dead, "run", 1, 0, "older").await,
        Published::Accepted
    );
    let mut reader = gateways[1].reader(1).await;
    // A text that would be shown after the older one.
    publish(&dead, "run_z", 1, 0, "beside").await;
    assert_eq!(next_text(&mut reader).await, text("run_z", 1, "beside"));
    assert_eq!(publish(&worker, "run", 2, 3, "er").await, Published::Gap);
    assert_eq!(next_text(&mut reader).await, text("run", 2, ""));
    assert_eq!(
        publish(&worker, "run", 2, 0, "newer").await,
        Published::Accepted
    );
    assert_eq!(next_text(&mut reader).await, text("run", 2, "newer"));
}
