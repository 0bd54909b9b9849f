//! The seam between replay and live (invariants 7 and 8).

#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_gateway::{
    tail::{Frame, Tail},
    watcher::Watcher,
};
use everturn_store::{Access, StoreError};
use everturn_stream::{
    Announcement, Following, InProcessStream, Item, OpenText, Part, Piece, Published, StreamError, StreamOptions,
    StreamReader, StreamWriter, TextKey,
};
use futures::FutureExt;
use proptest::prelude::*;
use support::memory::MemoryStore;
use tokio::time::{Instant, advance};

const POLL: Duration = Duration::from_secs(1);

/// A conversation and the worker that writes it.
struct World {
    store: MemoryStore,
    stream: InProcessStream,
    watcher: Watcher,
    /// Steps saved so far.
    step: u32,
    generation: u32,
    text: String,
}

impl World {
    fn new(options: StreamOptions) -> Self {
        let (store, stream) = (MemoryStore::default(), InProcessStream::new(options));
        let watcher = Watcher::new(Arc::new(store.clone()), POLL);
        Self { store, stream, watcher, step: 0, generation: 1, text: String::new() }
    }

    fn tail(&self, cursor: u32) -> Tail {
        self.tail_of(Arc::new(self.stream.clone()), cursor)
    }

    fn tail_of(&self, stream: Arc<dyn StreamReader>, cursor: u32) -> Tail {
        Tail::new(Arc::new(self.store.clone()), stream, Access::tenant("default"), "c", cursor, &self.watcher)
    }

    fn key(&self) -> TextKey {
        TextKey { agent_execution_id: "run".to_owned(), step: self.step, part: Part::Text }
    }

    fn piece(&self, generation: u32, offset: usize, text: &str) -> Piece {
        let (message_id, text) = ("m".to_owned(), text.to_owned());
        Piece { message_id, key: self.key(), generation, offset, text, is_end: false }
    }

    async fn say(&mut self, text: &str) {
        let piece = self.piece(self.generation, self.text.len(), text);
        self.text.push_str(text);
        if self.stream.publish("c", piece).await.unwrap() == Published::Gap {
            let whole = self.piece(self.generation, 0, &self.text);
            assert_eq!(self.stream.publish("c", whole).await.unwrap(), Published::Accepted);
        }
    }

    /// The worker dies; another one begins the step again.
    fn retry(&mut self) {
        self.generation += 1;
        self.text.clear();
    }

    /// Saves the step, with or without news of it.
    async fn save(&mut self, is_announced: bool) {
        let data = format!(r#"{{"thought":"{}","agent_execution_id":"run","step":{}}}"#, self.text, self.step);
        self.store.append("c", "m", "thought", &data);
        let last_sequence = self.store.append("c", "m", "act", "{}");
        if is_announced {
            let sealed = vec![("run".to_owned(), self.step)];
            self.stream.announce("c", Announcement { last_sequence, sealed }).await.unwrap();
        }
        self.step += 1;
        self.generation += 1;
        self.text.clear();
    }
}

/// Lets time pass, and the watcher look when it is time.
async fn elapse(time: Duration) {
    advance(time).await;
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
}

/// A reader that objects to everything a reader must not see.
struct Reader {
    tail: Tail,
    events: Vec<u32>,
    texts: BTreeMap<TextKey, (u32, String)>,
    sealed_step: Option<u32>,
}

impl Reader {
    fn new(tail: Tail) -> Self {
        Self { tail, events: Vec::new(), texts: BTreeMap::new(), sealed_step: None }
    }

    /// Takes at most `count` frames of those that are there.
    fn read(&mut self, count: usize) {
        for _ in 0..count {
            let Some(frame) = self.tail.next().now_or_never() else { return };
            self.take(frame.unwrap());
        }
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Event(event) => {
                self.events.push(event.sequence_number);
                if event.event_type == "thought" {
                    let step =
                        event.event_data.unwrap().to_value()["step"].as_u64().map(|step| u32::try_from(step).unwrap());
                    self.sealed_step = self.sealed_step.max(step);
                    self.texts.retain(|key, _| Some(key.step) > self.sealed_step);
                }
            }
            Frame::TextStart(text) => {
                assert!(Some(text.key.step) > self.sealed_step, "a text that an event has replaced");
                let older = self.texts.insert(text.key, (text.generation, text.text));
                assert!(older.is_none_or(|(generation, _)| generation <= text.generation));
            }
            Frame::TextDelta(piece) => {
                let (generation, text) = self.texts.get_mut(&piece.key).expect("a delta without its text");
                assert_eq!((*generation, text.len()), (piece.generation, piece.offset));
                text.push_str(&piece.text);
            }
            Frame::TextEnd { key, .. } => assert!(self.texts.contains_key(&key)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn open_text_sealed_before_the_cursor_is_not_shown() {
    // The event is saved, its announcement lost: the stream holds the text as open still.
    let mut world = World::new(StreamOptions::default());
    for _ in 0..150 {
        world.store.append("c", "m", "act", "{}");
    }
    world.say("thinking").await;
    world.save(false).await;
    let last = 152;
    for cursor in [0, 150, last] {
        let mut reader = Reader::new(world.tail(cursor));
        reader.read(1000);
        assert!(reader.texts.is_empty(), "from {cursor}");
        assert_eq!(reader.events, (cursor + 1..=last).collect::<Vec<_>>());
    }
    world.say("next").await;
    let mut reader = Reader::new(world.tail(last));
    reader.read(10);
    assert_eq!(reader.texts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn late_deltas_of_a_sealed_step_are_dropped() {
    let mut world = World::new(StreamOptions::default());
    world.say("a").await;
    let mut reader = Reader::new(world.tail(0));
    reader.read(10);
    let late = world.piece(world.generation, 1, "b");
    world.save(false).await;
    elapse(POLL).await;
    reader.read(10);
    // The stream does not know yet that the text is sealed.
    assert_eq!(world.stream.publish("c", late).await.unwrap(), Published::Accepted);
    reader.read(10);
    assert_eq!((reader.events.len(), reader.texts.len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn announced_events_come_at_once() {
    let mut world = World::new(StreamOptions::default());
    let mut reader = Reader::new(world.tail(0));
    reader.read(1);
    world.say("a").await;
    world.save(true).await;
    reader.read(10);
    assert_eq!((reader.events.len(), reader.texts.len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn events_nobody_announced_come_with_the_next_poll() {
    let mut world = World::new(StreamOptions::default());
    let mut tail = world.tail(0);
    assert!(tail.next().now_or_never().is_none());
    world.save(false).await;
    let started = Instant::now();
    let Frame::Event(event) = tail.next().await.unwrap() else { panic!("no event") };
    assert_eq!((event.sequence_number, started.elapsed()), (1, POLL));
}

#[tokio::test(start_paused = true)]
async fn cut_follower_comes_back_by_itself() {
    let mut world = World::new(StreamOptions { follower_buffer: 2, ..StreamOptions::default() });
    let mut reader = Reader::new(world.tail(0));
    reader.read(1);
    elapse(POLL / 2).await;
    for _ in 0..10 {
        world.say("word ").await;
    }
    reader.read(100);
    assert_eq!(reader.texts[&world.key()], (1, "word ".repeat(10)));
}

#[tokio::test(start_paused = true)]
async fn store_that_is_away_for_a_while_is_waited_for() {
    let mut world = World::new(StreamOptions::default());
    world.save(false).await;
    world.store.lock().broken = Some(|| StoreError::Unavailable("away".into()));
    let mut tail = world.tail(0);
    assert!(tokio::time::timeout(POLL * 5, tail.next()).await.is_err());
    world.store.lock().broken = None;
    assert!(matches!(tail.next().await, Ok(Frame::Event(_))));

    world.store.lock().broken = Some(|| StoreError::Unavailable("away".into()));
    assert!(world.tail(0).next().await.is_err(), "not for ever");
    world.store.lock().broken = Some(|| StoreError::Corrupt("odd".to_owned()));
    assert!(world.tail(0).next().now_or_never().unwrap().is_err());
}

/// A stream that is down, or cuts every follower at once.
#[derive(Default)]
struct BadStream {
    is_cutting: AtomicBool,
    follows: std::sync::atomic::AtomicU32,
}

#[async_trait]
impl StreamReader for BadStream {
    async fn follow(&self, _: &str) -> Result<Following, StreamError> {
        self.follows.fetch_add(1, Ordering::Relaxed);
        if !self.is_cutting.load(Ordering::Relaxed) {
            return Err(StreamError("down".into()));
        }
        let (_, items) = tokio::sync::mpsc::channel::<Item>(1);
        Ok(Following { open: Vec::new(), items })
    }
}

#[tokio::test(start_paused = true)]
async fn every_event_comes_without_the_stream() {
    for is_cutting in [false, true] {
        let mut world = World::new(StreamOptions::default());
        let bad = Arc::new(BadStream { is_cutting: is_cutting.into(), ..BadStream::default() });
        let mut tail = world.tail_of(Arc::clone(&bad) as Arc<dyn StreamReader>, 0);
        world.save(true).await;
        assert!(matches!(tail.next().await, Ok(Frame::Event(_))));
        assert!(matches!(tail.next().await, Ok(Frame::Event(_))));
        assert!(tokio::time::timeout(POLL * 10, tail.next()).await.is_err());
        assert!(bad.follows.load(Ordering::Relaxed) <= 12, "not in a busy loop");
    }
}

/// A stream that says what the test makes it say: each follower gets the next script.
struct Scripted(Mutex<VecDeque<(Vec<OpenText>, Vec<Item>)>>);

#[async_trait]
impl StreamReader for Scripted {
    async fn follow(&self, _: &str) -> Result<Following, StreamError> {
        let (open, script) = self.0.lock().unwrap().pop_front().ok_or_else(|| StreamError("down".into()))?;
        let (sender, items) = tokio::sync::mpsc::channel(100);
        for item in script {
            sender.try_send(item).unwrap();
        }
        Ok(Following { open, items })
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_never_goes_back_to_an_older_generation() {
    // The stream is flushed, and the worker thought dead is the first to write to it again.
    let world = World::new(StreamOptions::default());
    let open = |generation, text: &str| {
        let Piece { message_id, key, text, .. } = world.piece(generation, 0, text);
        OpenText { message_id, key, generation, text, is_ended: false }
    };
    let late = || vec![Item::Start(open(1, "old")), Item::Delta(world.piece(1, 3, "er"))];
    let scripts = VecDeque::from([(vec![open(2, "new")], late()), (vec![open(1, "old")], late())]);
    let mut tail = world.tail_of(Arc::new(Scripted(Mutex::new(scripts))), 0);
    assert_eq!(tail.next().await.unwrap(), Frame::TextStart(open(2, "new")));
    assert!(tokio::time::timeout(POLL * 5, tail.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_text_that_skips_a_piece_is_shown_anew() {
    let world = World::new(StreamOptions::default());
    let open = |text: &str| {
        let Piece { message_id, key, text, .. } = world.piece(1, 0, text);
        OpenText { message_id, key, generation: 1, text, is_ended: false }
    };
    let skipping = vec![Item::Delta(world.piece(1, 5, "?"))];
    let scripts = VecDeque::from([(vec![open("abc")], skipping), (vec![open("abcde?")], Vec::new())]);
    let mut tail = world.tail_of(Arc::new(Scripted(Mutex::new(scripts))), 0);
    assert_eq!(tail.next().await.unwrap(), Frame::TextStart(open("abc")));
    assert_eq!(tail.next().await.unwrap(), Frame::TextStart(open("abcde?")));
}

/// One thing that happens.
#[derive(Debug, Clone)]
enum Happening {
    Say(String),
    LateDelta,
    Retry,
    Save { is_announced: bool },
    StreamForgets,
    Connect { cursor: u32 },
    Read { reader: usize, count: usize },
    Wait(Duration),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let wait = prop_oneof![Just(Duration::from_millis(20)), Just(Duration::from_millis(300)), Just(POLL)];
    let one = prop_oneof![
        8 => "[a-zäß]{1,3}".prop_map(Happening::Say),
        1 => Just(Happening::LateDelta),
        1 => Just(Happening::Retry),
        2 => any::<bool>().prop_map(|is_announced| Happening::Save { is_announced }),
        1 => Just(Happening::StreamForgets),
        2 => (0..20_u32).prop_map(|cursor| Happening::Connect { cursor }),
        6 => (0..8_usize, 1..20_usize).prop_map(|(reader, count)| Happening::Read { reader, count }),
        2 => wait.prop_map(Happening::Wait),
    ];
    proptest::collection::vec(one, 1..120)
}

async fn live_through(happenings: Vec<Happening>, follower_buffer: usize) {
    let mut world = World::new(StreamOptions { follower_buffer, ..StreamOptions::default() });
    let mut readers = vec![(0, Reader::new(world.tail(0)))];
    for happening in happenings {
        match happening {
            Happening::Say(text) => world.say(&text).await,
            Happening::Retry => world.retry(),
            Happening::Save { is_announced } => world.save(is_announced).await,
            Happening::LateDelta => {
                let generation = world.generation.saturating_sub(1);
                let late = world.piece(generation, 0, "late");
                // Refused, unless the stream has forgotten; then the next piece of the newer one puts it right.
                world.stream.publish("c", late).await.unwrap();
            }
            Happening::StreamForgets => {
                // The worker goes on in the middle of its text, and learns of it by a gap.
                elapse(StreamOptions::default().ttl).await;
            }
            Happening::Connect { cursor } if readers.len() < 8 => {
                let last = world.store.lock().last_sequence("c");
                let cursor = cursor.min(last);
                readers.push((cursor, Reader::new(world.tail(cursor))));
            }
            Happening::Connect { .. } => {}
            Happening::Read { reader, count } => {
                let index = reader % readers.len();
                readers[index].1.read(count);
            }
            Happening::Wait(time) => elapse(time).await,
        }
    }
    world.say("the end").await;
    // Two polls: a reader that was cut just now follows again with the first.
    for _ in 0..3 {
        for (_, reader) in &mut readers {
            reader.read(usize::MAX);
        }
        elapse(POLL).await;
    }
    let last = world.store.lock().last_sequence("c");
    for (cursor, reader) in readers {
        assert_eq!(reader.events, (cursor + 1..=last).collect::<Vec<_>>());
        assert_eq!(reader.texts.get(&world.key()), Some(&(world.generation, world.text.clone())));
    }
}

#[test]
fn every_reader_ends_with_everything_once() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    proptest!(ProptestConfig::with_cases(400), |(happenings in happenings(), buffer in 1..40_usize)| {
        runtime().block_on(live_through(happenings, buffer));
    });
}
