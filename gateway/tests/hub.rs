//! Many readers on one live tail: invariant 7, fenced deltas; invariant 8, a cursor never expires; invariant 10,
//! nothing grows without a bound.

use std::{sync::Arc, time::Duration};

use everturn_gateway::{
    GatewayConfig,
    live::{Cursor, LiveFrame, LiveHub, LiveReader, ReaderEnd},
};
use everturn_store::{Access, Conversations, StoreError};
use everturn_stream::{Published, StreamOptions, StreamWriter};
use futures::FutureExt;
use proptest::prelude::*;
use tokio::time::Instant;

use crate::support::{
    store::TestStore,
    world::{Onlooker, POLL, World, elapse, settle},
};

fn access() -> Access {
    Access::tenant("default")
}

fn config() -> GatewayConfig {
    GatewayConfig {
        poll_interval: POLL,
        ..GatewayConfig::default()
    }
}

/// A gateway in front of the world.
fn hub(world: &World, config: &GatewayConfig) -> LiveHub {
    LiveHub::new(
        Arc::new(world.store.clone()),
        Arc::new(world.stream.clone()),
        config,
    )
}

/// Opens a reader after `cursor`, as a request does.
async fn open(hub: &LiveHub, world: &World, cursor: u32) -> LiveReader {
    let conversation = world
        .store
        .conversation(&access(), "c")
        .await
        .unwrap()
        .unwrap();
    hub.open(access(), &conversation, Cursor::at(cursor))
}

/// A reader that comes back with its cursor when the stream ends.
struct Client {
    reader: LiveReader,
    seen: Onlooker,
    cursor: u32,
    /// How often it was cut.
    cuts: usize,
}

impl Client {
    async fn connect(hub: &LiveHub, world: &World, cursor: u32) -> Self {
        let log = world.store.log("c");
        Self {
            reader: open(hub, world, cursor).await,
            seen: Onlooker::having(&log[..log.len().min(cursor as usize)]),
            cursor,
            cuts: 0,
        }
    }

    /// The number of the last event it has.
    fn place(&self) -> u32 {
        self.seen.events.last().copied().unwrap_or(self.cursor)
    }

    async fn come_back(&mut self, hub: &LiveHub, world: &World) {
        self.reader = open(hub, world, self.place()).await;
        self.seen.texts.clear();
    }

    /// Takes at most `count` frames of those that are there; comes back to `hub` when it is cut.
    async fn read(&mut self, hub: &LiveHub, world: &World, count: usize) {
        settle().await;
        for _ in 0..count {
            match self.reader.next().now_or_never() {
                None => return,
                Some(Ok(rendered)) => self.seen.take(&rendered.frame),
                Some(Err(end)) => {
                    assert_eq!(end, ReaderEnd::TooSlow);
                    self.cuts += 1;
                    self.come_back(hub, world).await;
                    settle().await;
                }
            }
        }
    }

    async fn read_all(&mut self, hub: &LiveHub, world: &World) {
        self.read(hub, world, usize::MAX).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_costs_one_read_however_many_readers() {
    let mut world = World::new(StreamOptions::default());
    let hub = hub(&world, &config());
    let mut clients = Vec::new();
    for _ in 0..100 {
        clients.push(Client::connect(&hub, &world, 0).await);
    }
    for client in &mut clients {
        client.read_all(&hub, &world).await;
    }
    assert_eq!(
        (hub.tails(), world.store.lock().reads),
        (1, 1),
        "the tail looks once when it begins"
    );
    // Before its first event, the tail reads once more when a text begins.
    world.say("thinking").await;
    settle().await;
    let (mut frames, reads) = (Vec::new(), world.store.lock().reads);
    world.save(true).await;
    for client in &mut clients {
        while let Some(Ok(rendered)) = {
            settle().await;
            client.reader.next().now_or_never()
        } {
            client.seen.take(&rendered.frame);
            frames.push(rendered);
        }
        assert_eq!(client.seen.events, [1, 2]);
    }
    assert_eq!(world.store.lock().reads - reads, 1);
    assert!(
        frames[3..]
            .chunks(3)
            .all(|same| Arc::ptr_eq(&same[0], &frames[0])),
        "rendered once"
    );

    // Whoever comes later reads for itself, up to the tail.
    let mut late = Client::connect(&hub, &world, 0).await;
    late.read_all(&hub, &world).await;
    assert_eq!(
        (late.seen.events.len(), world.store.lock().reads - reads),
        (2, 2)
    );
    let mut up_to_date = Client::connect(&hub, &world, 2).await;
    up_to_date.read_all(&hub, &world).await;
    let reads = world.store.lock().reads - reads;
    assert_eq!(reads, 3, "it looks whether its last event is the log's");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_is_cut_and_the_others_are_not() {
    let mut world = World::new(StreamOptions::default());
    let hub = hub(
        &world,
        &GatewayConfig {
            reader_buffer: 2000,
            ..config()
        },
    );
    let mut slow = Client::connect(&hub, &world, 0).await;
    let mut quick = Client::connect(&hub, &world, 0).await;
    slow.read_all(&hub, &world).await;
    for number in 0..50 {
        world.say(&format!("word {number} ")).await;
        quick.read_all(&hub, &world).await;
        assert_eq!(quick.seen.texts[&world.key()].1, world.text);
    }
    slow.read_all(&hub, &world).await;
    assert_eq!((slow.cuts, quick.cuts), (1, 0));
    assert_eq!(
        slow.seen.texts, quick.seen.texts,
        "it has come back to the whole text"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_ahead_makes_the_tail_read_and_is_shown_no_sealed_text() {
    // Saved, unannounced: this gateway has not read it, but the reader has it from another one.
    let mut world = World::new(StreamOptions::default());
    let hub = hub(&world, &config());
    let mut waiting = Client::connect(&hub, &world, 0).await;
    world.say("thinking").await;
    waiting.read_all(&hub, &world).await;
    assert_eq!(waiting.seen.texts.len(), 1);
    world.save(false).await;
    let mut ahead = Client::connect(&hub, &world, 2).await;
    ahead.read_all(&hub, &world).await;
    assert!(ahead.seen.events.is_empty() && ahead.seen.texts.is_empty());
    waiting.read_all(&hub, &world).await;
    assert_eq!(
        waiting.seen.events,
        [1, 2],
        "without waiting for the watcher"
    );
    world.say("more").await;
    for client in [&mut ahead, &mut waiting] {
        client.read_all(&hub, &world).await;
        assert_eq!(client.seen.texts.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_tail_outlives_its_readers_for_a_while() {
    let world = World::new(StreamOptions::default());
    let hub = hub(&world, &config());
    let linger = config().linger;
    let first = open(&hub, &world, 0).await;
    settle().await;
    elapse(linger * 3).await;
    assert_eq!(hub.tails(), 1);
    drop(first);
    settle().await;
    elapse(linger / 2).await;
    let reads = world.store.lock().reads;
    let second = open(&hub, &world, 0).await;
    settle().await;
    elapse(linger).await;
    assert_eq!(
        (hub.tails(), world.store.lock().reads),
        (1, reads),
        "found running, and kept"
    );
    drop(second);
    settle().await;
    elapse(linger).await;
    settle().await;
    assert_eq!(hub.tails(), 0);
}

#[tokio::test(start_paused = true)]
async fn readers_learn_that_a_conversation_is_gone() {
    let mut world = World::new(StreamOptions::default());
    world.save(false).await;
    let hub = hub(&world, &config());
    let mut readers = vec![open(&hub, &world, 0).await, open(&hub, &world, 2).await];
    let mut replaying = open(&hub, &world, 0).await;
    settle().await;
    for _ in 0..2 {
        assert!(readers[0].next().await.is_ok());
    }
    world.store.remove("c");
    let started = Instant::now();
    for reader in &mut readers {
        assert_eq!(reader.next().await.unwrap_err(), ReaderEnd::Deleted);
    }
    assert!(started.elapsed() <= POLL);
    assert_eq!(replaying.next().await.unwrap_err(), ReaderEnd::Deleted);
    assert_eq!(hub.tails(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_made_anew_is_not_for_readers_of_the_old_one() {
    let mut world = World::new(StreamOptions::default());
    let hub = hub(&world, &config());
    let mut old = open(&hub, &world, 0).await;
    settle().await;
    world.begin_anew();
    let mut new = open(&hub, &world, 0).await;
    world.say("secret").await;
    settle().await;
    assert!(old.next().now_or_never().is_none());
    assert_eq!(hub.tails(), 2);
    elapse(POLL).await;
    assert_eq!(
        old.next().now_or_never().unwrap().unwrap_err(),
        ReaderEnd::Deleted
    );
    assert!(
        matches!(new.next().now_or_never(), Some(Ok(rendered)) if matches!(rendered.frame, LiveFrame::TextStart(_)))
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_waited_for_but_not_for_ever() {
    let mut world = World::new(StreamOptions::default());
    let hub = hub(&world, &config());
    let mut live = open(&hub, &world, 0).await;
    settle().await;
    world.save(true).await;
    settle().await;
    let mut replaying = open(&hub, &world, 0).await;
    world.store.lock().broken = Some(|| StoreError::Unavailable("away".into()));
    assert!(
        tokio::time::timeout(POLL * 5, replaying.next())
            .await
            .is_err()
    );
    world.store.lock().broken = None;
    assert!(replaying.next().await.is_ok());
    assert!(live.next().await.is_ok() && live.next().await.is_ok());

    let mut replaying = open(&hub, &world, 0).await;
    world.store.lock().broken = Some(|| StoreError::Unavailable("away".into()));
    assert_eq!(replaying.next().await.unwrap_err(), ReaderEnd::Unreadable);
}

/// One thing that happens.
#[derive(Debug, Clone)]
enum Happening {
    Say(String),
    LateDelta,
    Retry,
    Save {
        is_announced: bool,
    },
    StreamForgets,
    Connect {
        gateway: usize,
        cursor: u32,
    },
    /// A client comes back, to another gateway or to the same one.
    ComeBack {
        client: usize,
        gateway: usize,
    },
    Read {
        client: usize,
        count: usize,
    },
    Wait(Duration),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let wait = prop_oneof![
        Just(Duration::from_millis(20)),
        Just(Duration::from_millis(300)),
        Just(POLL)
    ];
    let one = prop_oneof![
        8 => "[a-zäß]{1,3}".prop_map(Happening::Say),
        1 => Just(Happening::LateDelta),
        1 => Just(Happening::Retry),
        2 => any::<bool>().prop_map(|is_announced| Happening::Save { is_announced }),
        1 => Just(Happening::StreamForgets),
        2 => (0..2_usize, 0..20_u32).prop_map(|(gateway, cursor)| Happening::Connect { gateway, cursor }),
        2 => (0..12_usize, 0..2_usize).prop_map(|(client, gateway)| Happening::ComeBack { client, gateway }),
        6 => (0..12_usize, 1..20_usize).prop_map(|(client, count)| Happening::Read { client, count }),
        2 => wait.prop_map(Happening::Wait),
    ];
    proptest::collection::vec(one, 1..120)
}

/// Two gateways and up to twelve readers. The buffers are small, so that they overflow.
async fn live_through(mut world: World, happenings: Vec<Happening>, reader_buffer: usize) {
    world.store.append("c", "m", "user_message", "{}");
    world.claim();
    let config = GatewayConfig {
        reader_buffer,
        linger: POLL / 2,
        ..config()
    };
    let gateways = [hub(&world, &config), hub(&world, &config)];
    let mut clients = vec![(0, Client::connect(&gateways[0], &world, 0).await)];
    for happening in happenings {
        match happening {
            Happening::Say(text) => world.say(&text).await,
            Happening::Retry => {
                world.retry();
                world.claim();
            }
            Happening::Save { is_announced } => {
                world.save(is_announced).await;
                world.claim();
            }
            Happening::LateDelta => {
                let generation = world.generation.saturating_sub(1);
                let late = world.piece(generation, 0, "late");
                // Refused, unless the stream has forgotten; then the next piece of the newer one puts it right.
                let _: Published = world.stream.publish(&world.log_id, late).await.unwrap();
            }
            // The worker goes on in the middle of its text, and learns of it by a gap.
            Happening::StreamForgets => elapse(StreamOptions::default().ttl).await,
            Happening::Connect { gateway, cursor } if clients.len() < 12 => {
                let cursor = cursor.min(world.last_sequence());
                clients.push((
                    gateway,
                    Client::connect(&gateways[gateway], &world, cursor).await,
                ));
            }
            Happening::Connect { .. } => {}
            Happening::ComeBack { client, gateway } => {
                let index = client % clients.len();
                clients[index].0 = gateway;
                clients[index].1.come_back(&gateways[gateway], &world).await;
            }
            Happening::Read { client, count } => {
                let index = client % clients.len();
                let (gateway, client) = &mut clients[index];
                client.read(&gateways[*gateway], &world, count).await;
            }
            Happening::Wait(time) => elapse(time).await,
        }
    }
    world.say("the end").await;
    // Two polls: a tail that was cut just now follows again with the first.
    for _ in 0..3 {
        for (gateway, client) in &mut clients {
            client.read_all(&gateways[*gateway], &world).await;
        }
        elapse(POLL).await;
    }
    let last = world.last_sequence();
    for (_, client) in clients {
        assert_eq!(
            client.seen.events,
            (client.cursor + 1..=last).collect::<Vec<_>>()
        );
        assert_eq!(
            client.seen.texts.get(&world.key()),
            Some(&(world.generation, world.text.clone()))
        );
    }
}

#[test]
fn every_reader_ends_with_everything_once() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap()
    };
    // One store for all cases, because a new store takes milliseconds to make its tables.
    let store = TestStore::default();
    let buffers = (1..40_usize, prop_oneof![300..3000_usize, Just(1 << 20)]);
    proptest!(ProptestConfig::with_cases(150), |(happenings in happenings(), (follower, reader) in buffers)| {
        let options = StreamOptions { follower_buffer: follower, ..StreamOptions::default() };
        runtime().block_on(async {
            live_through(World::in_store(store.clone(), options), happenings, reader).await;
        });
    });
}
