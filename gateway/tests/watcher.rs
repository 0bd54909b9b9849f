//! One look at the store for all tails of a gateway.

#![allow(clippy::unwrap_used)]

mod support;

use std::{sync::Arc, time::Duration};

use everturn_gateway::live::{
    tail::{Frame, Tail},
    watcher::Watcher,
};
use everturn_store::{Access, StoreError};
use everturn_stream::{Announcement, InProcessStream, StreamWriter};
use futures::FutureExt;
use support::memory::MemoryStore;
use tokio::time::{Instant, advance, sleep, timeout};

const INTERVAL: Duration = Duration::from_secs(2);

struct Gateway {
    store: MemoryStore,
    stream: InProcessStream,
    watcher: Watcher,
}

impl Gateway {
    fn new() -> Self {
        let store = MemoryStore::default();
        let watcher = Watcher::new(Arc::new(store.clone()), INTERVAL);
        Self {
            store,
            stream: InProcessStream::default(),
            watcher,
        }
    }

    fn tail(&self, conversation_id: &str) -> Tail {
        self.store.add(conversation_id, "default");
        let (events, stream) = (Arc::new(self.store.clone()), Arc::new(self.stream.clone()));
        Tail::new(
            events,
            stream,
            Access::tenant("default"),
            conversation_id,
            0,
            &self.watcher,
        )
    }

    fn looks(&self) -> Vec<usize> {
        self.store
            .lock()
            .looks
            .drain(..)
            .map(|ids| ids.len())
            .collect()
    }

    fn append(&self, conversation_id: &str) -> u32 {
        self.store.append(conversation_id, "m", "act", "{}")
    }
}

/// Lets tails that are up to date wait for `time`.
async fn wait(tails: &mut [Tail], time: Duration) {
    let waiting = futures::future::select_all(tails.iter_mut().map(|tail| tail.next().boxed()));
    assert!(timeout(time, waiting).await.is_err(), "nothing is to come");
}

async fn next_sequence(tail: &mut Tail) -> u32 {
    let Frame::Event(event) = tail.next().await.unwrap() else {
        panic!("no event")
    };
    event.sequence_number
}

#[tokio::test(start_paused = true)]
async fn one_query_an_interval_serves_every_tail() {
    let gateway = Gateway::new();
    let mut tails: Vec<_> = (0..50)
        .map(|number| gateway.tail(&format!("c{}", number % 10)))
        .collect();
    wait(&mut tails, INTERVAL * 3 + Duration::from_millis(10)).await;
    assert_eq!(gateway.looks(), [10, 10, 10]);
    let reads = gateway.store.lock().reads;
    assert_eq!(reads, 50, "a tail that is up to date reads nothing");

    // Fewer are left, then none: the looks end, and begin again with the next tail.
    tails.truncate(1);
    wait(&mut tails, INTERVAL).await;
    assert_eq!(gateway.looks(), [1]);
    tails.clear();
    sleep(INTERVAL * 5).await;
    assert_eq!(gateway.looks(), [0; 0]);
    wait(
        &mut [gateway.tail("c")],
        INTERVAL * 2 + Duration::from_millis(10),
    )
    .await;
    assert_eq!(gateway.looks(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_missed_announcement_is_healed() {
    let gateway = Gateway::new();
    let (mut one, mut other) = (gateway.tail("one"), gateway.tail("other"));
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
    gateway.stream.announce("one", announcement).await.unwrap();
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
    let mut tails: Vec<_> = (0..2500)
        .map(|number| gateway.tail(&format!("c{number}")))
        .collect();
    wait(&mut tails, INTERVAL + Duration::from_millis(10)).await;
    assert_eq!(gateway.looks(), [1000, 1000, 500]);
    gateway.append("c77");
    gateway.append("c2477");
    for number in [77, 2477] {
        assert_eq!(next_sequence(&mut tails[number]).await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_is_made_good_by_the_next() {
    let gateway = Gateway::new();
    let mut tail = gateway.tail("c");
    assert!(tail.next().now_or_never().is_none());
    gateway.append("c");
    gateway.store.lock().broken = Some(|| StoreError::Unavailable("away".into()));
    assert!(timeout(INTERVAL * 3, tail.next()).await.is_err());
    gateway.store.lock().broken = None;
    let started = Instant::now();
    assert_eq!(next_sequence(&mut tail).await, 1);
    assert!(started.elapsed() <= INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_outran_the_tail_is_not_forgotten() {
    // The tail's own cursor decides: what a look found while the tail was busy is found by its next wait.
    let gateway = Gateway::new();
    let mut tail = gateway.tail("c");
    assert!(tail.next().now_or_never().is_none());
    gateway.append("c");
    for _ in 0..3 {
        advance(INTERVAL).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(next_sequence(&mut tail).now_or_never(), Some(1));
}
