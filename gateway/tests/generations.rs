//! A reader is never shown an older generation of a text than it has seen, whatever gateway it comes to and whatever the
//! stream has lost (invariant 7, fenced deltas). Two gateways, each of which has a stream that says what the test makes
//! it say.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use everturn_gateway::{
    GatewayConfig,
    live::{Cursor, LiveFrame, LiveHub, LiveReader},
};
use everturn_proto::LogId;
use everturn_store::{Access, Conversations};
use everturn_stream::{Following, Item, OpenText, Piece, StreamError, StreamOptions, StreamReader};
use futures::FutureExt;
use tokio::sync::mpsc;

use crate::support::world::{POLL, World, elapse, settle};

/// What a reader is shown that is shown no text.
const NOTHING: [u32; 0] = [];

/// The stream as one gateway sees it.
#[derive(Default)]
struct OwnStream(Mutex<Said>);

#[derive(Default)]
struct Said {
    is_away: bool,
    /// What a follower finds open.
    open: Vec<OpenText>,
    follower: Option<mpsc::Sender<Item>>,
}

#[async_trait]
impl StreamReader for OwnStream {
    async fn follow(&self, _: &LogId) -> Result<Following, StreamError> {
        let mut said = self.0.lock().unwrap();
        if said.is_away {
            return Err(StreamError::Failed("away".into()));
        }
        let (follower, items) = mpsc::channel(100);
        said.follower = Some(follower);
        let open = said.open.clone();
        Ok(Following { open, items })
    }

    async fn forget(&self, _: &LogId) -> Result<(), StreamError> {
        Ok(())
    }
}

/// A gateway with its stream.
struct Gateway {
    stream: Arc<OwnStream>,
    hub: LiveHub,
}

impl Gateway {
    /// Makes a gateway whose stream has these texts.
    fn with(world: &World, open: Vec<OpenText>) -> Self {
        let stream = Arc::new(OwnStream::default());
        stream.0.lock().unwrap().open = open;
        let config = GatewayConfig {
            poll_interval: POLL,
            ..GatewayConfig::default()
        };
        let reader = Arc::clone(&stream) as Arc<dyn StreamReader>;
        let hub = LiveHub::new(Arc::new(world.store.clone()), reader, &config);
        Self { stream, hub }
    }

    async fn reader(&self, world: &World, cursor: u32) -> LiveReader {
        let access = Access::tenant("default");
        let found = world.store.conversation(&access, "c").await.unwrap();
        self.hub.open(access, &found.unwrap(), Cursor::at(cursor))
    }

    fn says(&self, item: Item) {
        let said = self.stream.0.lock().unwrap();
        said.follower.as_ref().unwrap().try_send(item).unwrap();
    }

    /// The stream is away from now on, and its follower is cut.
    fn loses_its_stream(&self) {
        *self.stream.0.lock().unwrap() = Said {
            is_away: true,
            ..Said::default()
        };
    }

    /// The stream is back, with these texts.
    fn has_its_stream_back(&self, open: Vec<OpenText>) {
        *self.stream.0.lock().unwrap() = Said {
            open,
            ..Said::default()
        };
    }
}

/// A conversation whose turn has begun, with a step that was claimed three times.
fn claimed_three_times() -> World {
    let mut world = World::new(StreamOptions::default());
    world.store.append("c", "m", "user_message", "{}");
    world.generation = 3;
    world.claim();
    world
}

fn open(world: &World, generation: u32, text: &str) -> OpenText {
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
}

/// The generations of the texts that a reader is shown now. Events are passed over.
async fn shown(reader: &mut LiveReader) -> Vec<u32> {
    settle().await;
    let mut generations = Vec::new();
    while let Some(next) = reader.next().now_or_never() {
        match &next.unwrap().frame {
            LiveFrame::TextStart(text) => generations.push(text.generation),
            LiveFrame::TextDelta(piece) => generations.push(piece.generation),
            LiveFrame::Event(_) => {}
            other => panic!("{other:?}"),
        }
        settle().await;
    }
    generations
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_an_older_state_shows_nothing_to_who_comes_from_another_gateway() {
    let world = claimed_three_times();
    let first = Gateway::with(&world, vec![open(&world, 3, "newest")]);
    assert_eq!(shown(&mut first.reader(&world, 0).await).await, [3]);
    // Redis came back as it was before the third try, and the second gateway has not read this conversation before.
    let second = Gateway::with(&world, vec![open(&world, 2, "older")]);
    let mut reader = second.reader(&world, 1).await;
    assert_eq!(shown(&mut reader).await, NOTHING);
    // A worker that was taken for dead goes on writing, and begins its text again.
    second.says(Item::Delta(world.piece(2, 5, "!")));
    second.says(Item::Start(open(&world, 2, "older!")));
    second.says(Item::Delta(world.piece(2, 6, "!")));
    assert_eq!(shown(&mut reader).await, NOTHING);
    second.says(Item::Start(open(&world, 3, "newest")));
    second.says(Item::Delta(world.piece(3, 6, "!")));
    assert_eq!(shown(&mut reader).await, [3, 3]);
    second.says(Item::Start(open(&world, 4, "yet newer")));
    assert_eq!(shown(&mut reader).await, [4]);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_cannot_hear_of_the_newest_generation_shows_none() {
    let mut world = claimed_three_times();
    world.generation = 2;
    world.claim();
    let first = Gateway::with(&world, vec![open(&world, 2, "older")]);
    let second = Gateway::with(&world, vec![open(&world, 2, "older")]);
    let mut mover = first.reader(&world, 1).await;
    let mut stayer = second.reader(&world, 1).await;
    assert_eq!(shown(&mut mover).await, [2]);
    assert_eq!(shown(&mut stayer).await, [2]);
    // Only the first gateway still has its stream when the step is tried again.
    second.loses_its_stream();
    world.generation = 3;
    world.claim();
    first.says(Item::Start(open(&world, 3, "newest")));
    assert_eq!(shown(&mut mover).await, [3]);
    let mut mover = second.reader(&world, 1).await;
    assert_eq!(shown(&mut mover).await, NOTHING);
    assert_eq!(shown(&mut stayer).await, NOTHING, "it keeps what it has");
    second.has_its_stream_back(vec![open(&world, 3, "newest")]);
    elapse(POLL).await;
    assert_eq!(shown(&mut mover).await, [3]);
    assert_eq!(shown(&mut stayer).await, [3]);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_has_read_no_event_yet_reads_before_it_shows_a_text() {
    let world = World::new(StreamOptions::default());
    let second = Gateway::with(&world, Vec::new());
    let mut waiting = second.reader(&world, 0).await;
    assert_eq!(shown(&mut waiting).await, NOTHING);
    // The turn begins, and nothing of it is announced to the second gateway.
    world.store.append("c", "m", "user_message", "{}");
    world.store.claim("c", "run", 3);
    let first = Gateway::with(&world, vec![open(&world, 3, "newest")]);
    assert_eq!(shown(&mut first.reader(&world, 0).await).await, [3]);
    // The reader has lost its cursor.
    let mut reader = second.reader(&world, 0).await;
    second.says(Item::Start(open(&world, 2, "older")));
    assert_eq!(shown(&mut reader).await, NOTHING);
    assert_eq!(shown(&mut second.reader(&world, 0).await).await, NOTHING);
    second.says(Item::Start(open(&world, 3, "newest")));
    assert_eq!(shown(&mut reader).await, [3]);
    assert_eq!(shown(&mut waiting).await, [3]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_without_a_cursor_reads_before_it_is_shown_a_text() {
    let world = World::new(StreamOptions::default());
    let second = Gateway::with(&world, vec![open(&world, 2, "older")]);
    let mut waiting = second.reader(&world, 0).await;
    assert_eq!(shown(&mut waiting).await, [2]);
    // The step is tried again, and nothing of it is announced to the second gateway, not even the turn's beginning.
    world.store.append("c", "m", "user_message", "{}");
    world.store.claim("c", "run", 3);
    let first = Gateway::with(&world, vec![open(&world, 3, "newest")]);
    assert_eq!(shown(&mut first.reader(&world, 0).await).await, [3]);
    assert_eq!(shown(&mut second.reader(&world, 0).await).await, NOTHING);
}
