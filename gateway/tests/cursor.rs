//! Cursors that do not fit the log any more: the database has lost its last commits, or the conversation was removed and
//! made anew (invariant 8, a cursor never expires).

use std::sync::Arc;

use everturn_gateway::{
    GatewayConfig,
    live::{Cursor, LiveFrame, LiveHub, LiveReader, ReaderEnd},
};
use everturn_store::{Access, Conversations, StoreError};
use everturn_stream::{Announcement, StreamOptions, StreamWriter};
use futures::FutureExt;
use tokio::time::timeout;

use crate::support::world::{World, settle};

fn hub(world: &World) -> LiveHub {
    let store = Arc::new(world.store.clone());
    LiveHub::new(
        store,
        Arc::new(world.stream.clone()),
        &GatewayConfig::default(),
    )
}

async fn open(hub: &LiveHub, world: &World, cursor: Cursor) -> LiveReader {
    let access = Access::tenant("default");
    let found = world.store.conversation(&access, "c").await.unwrap();
    hub.open(access, &found.unwrap(), cursor)
}

/// The frames that are there, by what they say: `reset N`, or the number of an event.
async fn read(reader: &mut LiveReader) -> Result<Vec<String>, ReaderEnd> {
    let mut frames = Vec::new();
    loop {
        settle().await;
        match reader.next().now_or_never() {
            None => return Ok(frames),
            Some(Err(end)) => return Err(end),
            Some(Ok(rendered)) => frames.push(match &rendered.frame {
                LiveFrame::Reset { from_sequence } => format!("reset {from_sequence}"),
                LiveFrame::Event(event) => event.sequence_number.to_string(),
                other => panic!("{other:?}"),
            }),
        }
    }
}

/// A world whose conversation has five events, and the cursor of a reader who has them.
fn with_five_events() -> (World, Cursor) {
    let world = World::new(StreamOptions::default());
    while world.last_sequence() < 5 {
        world.store.append("c", "m", "user_message", "{}");
    }
    let cursor = Cursor::behind(world.store.log("c").last().unwrap());
    (world, cursor)
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_this_log_goes_on() {
    let (world, cursor) = with_five_events();
    let hub = hub(&world);
    for cursor in [cursor, Cursor::at(5)] {
        let mut reader = open(&hub, &world, cursor).await;
        assert!(read(&mut reader).await.unwrap().is_empty());
    }
    let mut reader = open(&hub, &world, Cursor::at(3)).await;
    assert_eq!(read(&mut reader).await.unwrap(), ["4", "5"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_events_that_were_lost_begins_anew_where_both_logs_part() {
    let (world, cursor) = with_five_events();
    world.store.lose_last_event("c");
    world.store.lose_last_event("c");
    // The log is shorter than the cursor.
    let mut reader = open(&hub(&world), &world, cursor).await;
    assert_eq!(read(&mut reader).await.unwrap(), ["reset 4"]);
    // Other events have the numbers of those that were lost, and there are more.
    for _ in 0..3 {
        world.store.append("c", "m", "thought", "{}");
    }
    let mut reader = open(&hub(&world), &world, cursor).await;
    assert_eq!(read(&mut reader).await.unwrap(), ["reset 4", "4", "5", "6"]);
    // Then the reader has a cursor of this log.
    let cursor = Cursor::behind(&world.store.log("c")[5]);
    let mut reader = open(&hub(&world), &world, cursor).await;
    assert!(read(&mut reader).await.unwrap().is_empty());
}

/// The log changes under a reader who stays connected. The reader is cut, and told when it comes back.
#[tokio::test(start_paused = true)]
async fn a_tail_does_not_go_on_in_another_log() {
    let (world, cursor) = with_five_events();
    let hub = hub(&world);
    let mut reader = open(&hub, &world, cursor).await;
    assert!(read(&mut reader).await.unwrap().is_empty());
    world.store.lose_last_event("c");
    for _ in 0..2 {
        world.store.append("c", "m", "thought", "{}");
    }
    let announcement = Announcement {
        last_sequence: 6,
        sealed: Vec::new(),
    };
    let log = &world.log_id;
    world.stream.announce(log, announcement).await.unwrap();
    assert_eq!(read(&mut reader).await.unwrap_err(), ReaderEnd::Unreadable);
    let mut reader = open(&hub, &world, cursor).await;
    assert_eq!(read(&mut reader).await.unwrap(), ["reset 5", "5", "6"]);
}

/// While the store is away it loses an event, and another one takes its number before anybody looks.
#[tokio::test(start_paused = true)]
async fn a_log_that_is_as_long_as_the_lost_one_is_noticed() {
    let (world, cursor) = with_five_events();
    let hub = hub(&world);
    let mut reader = open(&hub, &world, cursor).await;
    assert!(read(&mut reader).await.unwrap().is_empty());
    world.store.lock().broken = Some(|| StoreError::Unavailable("away".into()));
    let interval = GatewayConfig::default().poll_interval;
    assert!(timeout(interval * 2, reader.next()).await.is_err());
    world.store.lock().broken = None;
    world.store.lose_last_event("c");
    world.store.append("c", "m", "thought", "{}");
    let end = timeout(interval * 2, reader.next()).await.unwrap();
    assert_eq!(end.unwrap_err(), ReaderEnd::Unreadable);
    let mut reader = open(&hub, &world, cursor).await;
    assert_eq!(read(&mut reader).await.unwrap(), ["reset 5", "5"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_a_conversation_that_was_made_anew_begins_anew() {
    let (mut world, cursor) = with_five_events();
    world.store.lose_last_event("c");
    world.begin_anew();
    for _ in 0..6 {
        world.store.append("c", "m", "user_message", "{}");
    }
    let mut reader = open(&hub(&world), &world, cursor).await;
    let all = ["reset 1", "1", "2", "3", "4", "5", "6"];
    assert_eq!(read(&mut reader).await.unwrap(), all);
}

/// A plain number does not say of which log it is, only that the log has no such event.
#[tokio::test(start_paused = true)]
async fn a_number_past_the_end_begins_anew() {
    let (world, _) = with_five_events();
    let mut reader = open(&hub(&world), &world, Cursor::at(6)).await;
    let all = ["reset 1", "1", "2", "3", "4", "5"];
    assert_eq!(read(&mut reader).await.unwrap(), all);
}
