//! The tail, which joins replay and live, as its readers see it (invariant 7, fenced deltas; invariant 8, a cursor
//! never expires). Many readers are tested in `hub.rs`.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use everturn_gateway::{
    GatewayConfig,
    live::{Cursor, LiveFrame, LiveHub, LiveReader, ReaderEnd},
};
use everturn_proto::{LogId, event::Event};
use everturn_store::{Access, Conversations, StoreError};
use everturn_stream::{
    Following, Item, OpenText, Piece, Published, StreamError, StreamOptions, StreamReader,
    StreamWriter,
};
use futures::FutureExt;
use tokio::time::{Instant, timeout};

use crate::support::world::{Onlooker, POLL, World, elapse, settle};

/// A reader of the world's conversation from after `cursor`, at a gateway of its own.
async fn reader_from(world: &World, cursor: u32) -> LiveReader {
    reader_of(world, Arc::new(world.stream.clone()), cursor).await
}

async fn reader_of(world: &World, stream: Arc<dyn StreamReader>, cursor: u32) -> LiveReader {
    let config = GatewayConfig {
        poll_interval: POLL,
        ..GatewayConfig::default()
    };
    let hub = LiveHub::new(Arc::new(world.store.clone()), stream, &config);
    let access = Access::tenant("default");
    let found = world.store.conversation(&access, "c").await.unwrap();
    let reader = hub.open(access, &found.unwrap(), Cursor::at(cursor));
    settle().await;
    reader
}

/// The next frame, which must be an event.
async fn next_event(reader: &mut LiveReader) -> Event {
    match reader.next().await.unwrap().frame.clone() {
        LiveFrame::Event(event) => event,
        other => panic!("no event, but {other:?}"),
    }
}

/// A reader that panics on what a reader must not see.
struct Watching {
    reader: LiveReader,
    seen: Onlooker,
}

impl Watching {
    async fn from(world: &World, cursor: u32) -> Self {
        let mut watching = Self {
            reader: reader_from(world, cursor).await,
            seen: Onlooker::default(),
        };
        watching.read(1000).await;
        watching
    }

    /// Takes at most `count` frames of those that are there.
    async fn read(&mut self, count: usize) {
        settle().await;
        for _ in 0..count {
            let Some(frame) = self.reader.next().now_or_never() else {
                return;
            };
            self.seen.take(&frame.unwrap().frame);
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
        let reader = Watching::from(&world, cursor).await;
        assert!(reader.seen.texts.is_empty(), "from {cursor}");
        assert_eq!(reader.seen.events, (cursor + 1..=last).collect::<Vec<_>>());
    }
    world.say("next").await;
    let reader = Watching::from(&world, last).await;
    assert_eq!(reader.seen.texts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn late_deltas_of_a_sealed_step_are_dropped() {
    let mut world = World::new(StreamOptions::default());
    world.say("a").await;
    let mut reader = Watching::from(&world, 0).await;
    assert_eq!(reader.seen.texts.len(), 1);
    let late = world.piece(world.generation, 1, "b");
    world.save(false).await;
    elapse(POLL).await;
    reader.read(10).await;
    // The stream does not know yet that the text is sealed.
    assert_eq!(
        world.stream.publish(&world.log_id, late).await.unwrap(),
        Published::Accepted
    );
    reader.read(10).await;
    assert_eq!((reader.seen.events.len(), reader.seen.texts.len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn announced_events_come_at_once() {
    let mut world = World::new(StreamOptions::default());
    let mut reader = Watching::from(&world, 0).await;
    world.say("a").await;
    world.save(true).await;
    reader.read(10).await;
    assert_eq!((reader.seen.events.len(), reader.seen.texts.len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn events_nobody_announced_come_with_the_next_poll() {
    let mut world = World::new(StreamOptions::default());
    let started = Instant::now();
    let mut reader = reader_from(&world, 0).await;
    assert!(reader.next().now_or_never().is_none());
    world.save(false).await;
    let event = next_event(&mut reader).await;
    assert_eq!((event.sequence_number, started.elapsed()), (1, POLL));
}

#[tokio::test(start_paused = true)]
async fn cut_follower_comes_back_by_itself() {
    let mut world = World::new(StreamOptions {
        follower_buffer: 2,
        ..StreamOptions::default()
    });
    let mut reader = Watching::from(&world, 0).await;
    elapse(POLL / 2).await;
    for _ in 0..10 {
        world.say("word ").await;
    }
    reader.read(100).await;
    assert_eq!(reader.seen.texts[&world.key()], (1, "word ".repeat(10)));
}

#[tokio::test(start_paused = true)]
async fn store_that_is_away_for_a_while_is_waited_for() {
    let unavailable = || StoreError::Unavailable("away".into());
    let mut world = World::new(StreamOptions::default());
    let mut reader = reader_from(&world, 0).await;
    world.save(true).await;
    world.store.lock().broken = Some(unavailable);
    assert!(timeout(POLL * 5, reader.next()).await.is_err());
    world.store.lock().broken = None;
    assert_eq!(next_event(&mut reader).await.sequence_number, 1);

    for (error, patience) in [
        (unavailable as fn() -> StoreError, POLL * 31),
        (|| StoreError::Corrupt("odd".to_owned()), POLL / 2),
    ] {
        let last = world.last_sequence();
        let mut reader = reader_from(&world, last).await;
        world.save(true).await;
        world.store.lock().broken = Some(error);
        let end = timeout(patience, reader.next()).await;
        assert_eq!(end.expect("for ever").unwrap_err(), ReaderEnd::Unreadable);
        world.store.lock().broken = None;
    }
}

/// A stream that is down, or cuts every follower at once.
#[derive(Default)]
struct BadStream {
    is_cutting: AtomicBool,
    follows: std::sync::atomic::AtomicU32,
}

#[async_trait]
impl StreamReader for BadStream {
    async fn follow(&self, _: &LogId) -> Result<Following, StreamError> {
        self.follows.fetch_add(1, Ordering::Relaxed);
        if !self.is_cutting.load(Ordering::Relaxed) {
            return Err(StreamError::Failed("down".into()));
        }
        let (_, items) = tokio::sync::mpsc::channel::<Item>(1);
        Ok(Following {
            open: Vec::new(),
            items,
        })
    }

    async fn forget(&self, _: &LogId) -> Result<(), StreamError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn every_event_comes_without_the_stream() {
    for is_cutting in [false, true] {
        let mut world = World::new(StreamOptions::default());
        let bad = Arc::new(BadStream {
            is_cutting: is_cutting.into(),
            ..BadStream::default()
        });
        let stream = Arc::clone(&bad) as Arc<dyn StreamReader>;
        let mut reader = reader_of(&world, stream, 0).await;
        world.save(true).await;
        for number in [1, 2] {
            assert_eq!(next_event(&mut reader).await.sequence_number, number);
        }
        assert!(timeout(POLL * 10, reader.next()).await.is_err());
        assert!(
            bad.follows.load(Ordering::Relaxed) <= 12,
            "not in a busy loop"
        );
    }
}

/// A stream that says what the test makes it say: each follower gets the next script.
struct Scripted(Mutex<VecDeque<(Vec<OpenText>, Vec<Item>)>>);

#[async_trait]
impl StreamReader for Scripted {
    async fn follow(&self, _: &LogId) -> Result<Following, StreamError> {
        let (open, script) = self
            .0
            .lock()
            .unwrap()
            .pop_front()
            .ok_or_else(|| StreamError::Failed("down".into()))?;
        let (sender, items) = tokio::sync::mpsc::channel(100);
        for item in script {
            sender.try_send(item).unwrap();
        }
        Ok(Following { open, items })
    }

    async fn forget(&self, _: &LogId) -> Result<(), StreamError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_never_goes_back_to_an_older_generation() {
    // The stream is flushed, and the worker thought dead is the first to write to it again.
    let world = World::new(StreamOptions::default());
    let open = |generation, text: &str| {
        let Piece {
            message_id,
            key,
            text,
            ..
        } = world.piece(generation, 0, text);
        OpenText {
            message_id,
            key,
            generation,
            text,
            is_ended: false,
        }
    };
    let late = || {
        vec![
            Item::Start(open(1, "old")),
            Item::Delta(world.piece(1, 3, "er")),
        ]
    };
    let scripts = VecDeque::from([
        (vec![open(2, "new")], late()),
        (vec![open(1, "old")], late()),
    ]);
    let mut reader = reader_of(&world, Arc::new(Scripted(Mutex::new(scripts))), 0).await;
    let first = reader.next().await.unwrap();
    assert_eq!(first.frame, LiveFrame::TextStart(open(2, "new")));
    assert!(timeout(POLL * 5, reader.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_text_that_skips_a_piece_is_shown_anew() {
    let world = World::new(StreamOptions::default());
    let open = |text: &str| {
        let Piece {
            message_id,
            key,
            text,
            ..
        } = world.piece(1, 0, text);
        OpenText {
            message_id,
            key,
            generation: 1,
            text,
            is_ended: false,
        }
    };
    let skipping = vec![Item::Delta(world.piece(1, 5, "?"))];
    let scripts = VecDeque::from([
        (vec![open("abc")], skipping),
        (vec![open("abcde?")], Vec::new()),
    ]);
    let mut reader = reader_of(&world, Arc::new(Scripted(Mutex::new(scripts))), 0).await;
    for text in ["abc", "abcde?"] {
        let shown = reader.next().await.unwrap();
        assert_eq!(shown.frame, LiveFrame::TextStart(open(text)));
    }
}

/// The stream has lost everything, and the worker of a step that is saved, with the last event, speaks again.
async fn a_late_text_is_not_shown(mut world: World) {
    let late = world.piece(1, 0, "late");
    world.save(false).await;
    let cursor = world.last_sequence();
    let mut reader = Watching::from(&world, cursor).await;
    assert_eq!(
        world.stream.publish(&world.log_id, late).await.unwrap(),
        Published::Accepted
    );
    reader.read(10).await;
    assert!(reader.seen.texts.is_empty());
    world.say("new").await;
    reader.read(10).await;
    assert_eq!(reader.seen.texts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_first_text_is_searched_for_in_the_past() {
    a_late_text_is_not_shown(World::new(StreamOptions::default())).await;
}

#[tokio::test(start_paused = true)]
async fn the_past_is_searched_to_the_cursor_however_large_its_events_are() {
    let world = World::new(StreamOptions::default());
    let large = format!(r#"{{"content":"{}"}}"#, "x".repeat(200_000));
    for _ in 0..5 {
        world.store.append("c", "m", "user_message", &large);
    }
    a_late_text_is_not_shown(world).await;
}

#[tokio::test(start_paused = true)]
async fn a_replay_reads_a_bounded_number_of_bytes_at_a_time() {
    let world = World::new(StreamOptions::default());
    let large = format!(r#"{{"content":"{}"}}"#, "x".repeat(50_000));
    for _ in 0..10 {
        world.store.append("c", "m", "user_message", &large);
    }
    let mut reader = reader_from(&world, 0).await;
    let reads = world.store.lock().reads;
    next_event(&mut reader).await;
    assert!(
        world.store.lock().reads - reads <= 2,
        "one page, and the one behind it"
    );
    for _ in 1..10 {
        next_event(&mut reader).await;
    }
    assert_eq!(world.store.lock().reads - reads, 5, "two events a page");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_gone_ends_the_tail() {
    let mut world = World::new(StreamOptions::default());
    world.save(false).await;
    let mut gone = reader_from(&world, 2).await;
    assert!(timeout(POLL * 3, gone.next()).await.is_err());
    world.store.remove("c");
    assert_eq!(gone.next().await.unwrap_err(), ReaderEnd::Deleted);
    // The next one of the same name is another one, also when it has as many events.
    world.begin_anew();
    world.save(false).await;
    let mut replaced = reader_from(&world, 2).await;
    world.begin_anew();
    world.save(false).await;
    assert_eq!(replaced.next().await.unwrap_err(), ReaderEnd::Deleted);
    // A database that has lost its last commits has fewer events of the same conversation.
    let mut ahead = reader_from(&world, 2).await;
    assert!(timeout(POLL * 3, ahead.next()).await.is_err());
    world.store.lose_last_event("c");
    assert_eq!(ahead.next().await.unwrap_err(), ReaderEnd::Unreadable);
}
