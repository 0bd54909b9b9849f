//! One query of the store for all tails of a gateway.

use std::{sync::Arc, time::Duration};

use everturn_gateway::{
    GatewayConfig,
    live::{Cursor, LiveFrame, LiveHub, LiveReader, News, Watcher},
};
use everturn_store::{Access, Conversations, StoreError};
use everturn_stream::{Announcement, InProcessStream, StreamWriter};
use futures::FutureExt;
use tokio::time::{Instant, advance, sleep, timeout};

use crate::support::{store::TestStore, world::settle};

const INTERVAL: Duration = Duration::from_secs(2);

/// A gateway whose tails end with their last reader.
struct Gateway {
    store: TestStore,
    stream: InProcessStream,
    hub: LiveHub,
}

impl Gateway {
    fn new() -> Self {
        let (store, stream) = (TestStore::default(), InProcessStream::default());
        let config = GatewayConfig {
            poll_interval: INTERVAL,
            linger: Duration::ZERO,
            ..GatewayConfig::default()
        };
        let (events, texts) = (Arc::new(store.clone()), Arc::new(stream.clone()));
        let hub = LiveHub::new(events, texts, &config);
        Self { store, stream, hub }
    }

    async fn reader(&self, conversation_id: &str) -> LiveReader {
        self.store.add(conversation_id, "default");
        let access = Access::tenant("default");
        let found = self.store.conversation(&access, conversation_id).await;
        let reader = self
            .hub
            .open(access, &found.unwrap().unwrap(), Cursor::default());
        settle().await;
        reader
    }

    fn looks(&self) -> Vec<usize> {
        std::mem::take(&mut self.store.lock().looks)
    }

    fn append(&self, conversation_id: &str) -> u32 {
        self.store.append(conversation_id, "m", "act", "{}")
    }
}

/// Lets readers that are up to date wait for `time`.
async fn wait(readers: &mut [LiveReader], time: Duration) {
    let waiting =
        futures::future::select_all(readers.iter_mut().map(|reader| reader.next().boxed()));
    assert!(timeout(time, waiting).await.is_err(), "nothing is to come");
}

async fn next_sequence(reader: &mut LiveReader) -> u32 {
    match &reader.next().await.unwrap().frame {
        LiveFrame::Event(event) => event.sequence_number,
        other => panic!("no event, but {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn one_query_an_interval_serves_every_tail() {
    let gateway = Gateway::new();
    let mut readers = Vec::new();
    for number in 0..50 {
        readers.push(gateway.reader(&format!("c{}", number % 10)).await);
    }
    wait(&mut readers, INTERVAL * 3 + Duration::from_millis(10)).await;
    assert_eq!(gateway.looks(), [10, 10, 10]);
    let reads = gateway.store.lock().reads;
    assert_eq!(reads, 10, "a tail that is up to date reads nothing");

    // Fewer are left, then none: the looks end, and begin again with the next tail.
    readers.truncate(1);
    wait(&mut readers, INTERVAL).await;
    assert_eq!(gateway.looks(), [1]);
    readers.clear();
    sleep(INTERVAL * 5).await;
    assert_eq!(gateway.looks(), [0; 0]);
    wait(
        &mut [gateway.reader("c").await],
        INTERVAL * 2 + Duration::from_millis(10),
    )
    .await;
    assert_eq!(gateway.looks(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_missed_announcement_is_healed() {
    let gateway = Gateway::new();
    let (mut one, mut other) = (gateway.reader("one").await, gateway.reader("other").await);
    assert!(one.next().now_or_never().is_none() && other.next().now_or_never().is_none());
    let started = Instant::now();
    gateway.append("one");
    assert_eq!(next_sequence(&mut one).await, 1);
    assert!(started.elapsed() <= INTERVAL);
    wait(&mut [other], Duration::from_millis(1)).await;

    let last_sequence = gateway.append("one");
    let announcement = Announcement {
        last_sequence,
        sealed: Vec::new(),
    };
    let log = gateway.store.log_of("one").id;
    gateway.stream.announce(&log, announcement).await.unwrap();
    let announced = Instant::now();
    assert_eq!(next_sequence(&mut one).await, 2);
    assert_eq!(
        announced.elapsed(),
        Duration::ZERO,
        "what is announced does not wait"
    );
}

#[tokio::test(start_paused = true)]
async fn queries_are_bounded() {
    let gateway = Gateway::new();
    let mut readers = Vec::new();
    for number in 0..2500 {
        readers.push(gateway.reader(&format!("c{number}")).await);
    }
    wait(&mut readers, INTERVAL + Duration::from_millis(10)).await;
    assert_eq!(gateway.looks(), [1000, 1000, 500]);
    gateway.append("c77");
    gateway.append("c2477");
    for number in [77, 2477] {
        assert_eq!(next_sequence(&mut readers[number]).await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_is_made_good_by_the_next() {
    let gateway = Gateway::new();
    let mut reader = gateway.reader("c").await;
    assert!(reader.next().now_or_never().is_none());
    gateway.append("c");
    gateway.store.lock().broken = Some(|| StoreError::Unavailable("away".into()));
    assert!(timeout(INTERVAL * 3, reader.next()).await.is_err());
    gateway.store.lock().broken = None;
    let started = Instant::now();
    assert_eq!(next_sequence(&mut reader).await, 1);
    assert!(started.elapsed() <= INTERVAL);

    // After an outage each tail reads once, and then no more.
    gateway.store.lock().broken = Some(|| StoreError::Unavailable("away".into()));
    assert!(timeout(INTERVAL * 3, reader.next()).await.is_err());
    gateway.store.lock().broken = None;
    let before = gateway.store.lock().reads;
    wait(&mut [reader], INTERVAL * 5).await;
    assert_eq!(gateway.store.lock().reads, before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_outran_the_tail_is_not_forgotten() {
    // The tail's own cursor decides: what a look found while the tail was busy is found by its next wait.
    let gateway = Gateway::new();
    let watcher = Watcher::new(Arc::new(gateway.store.clone()), INTERVAL);
    gateway.store.add("c", "default");
    let mut watched = watcher.watch(&gateway.store.log_of("c"));
    gateway.append("c");
    for _ in 0..3 {
        advance(INTERVAL).await;
        settle().await;
    }
    assert_eq!(watched.news(0).now_or_never(), Some(News::Behind));
}
