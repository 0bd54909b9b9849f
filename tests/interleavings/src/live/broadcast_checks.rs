//! Readers that come and leave while the tail of their conversation shows events and ends.

use std::{
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use everturn_proto::LogId;
use everturn_store::Conversation;
use shuttle::{
    future::{JoinHandle, block_on, spawn},
    thread,
};

use super::{
    broadcast::{Broadcast, Subscribed},
    broadcasts::{Broadcasts, RunningTail},
    end::ReaderEnd,
    queue::ReaderQueue,
    queue_checks::{event, sequence},
};
use crate::{config::GatewayConfig, limits::memory::Memory, orders::in_many_orders};

/// The gateway's part of a check: its broadcasts and its tails.
#[derive(Clone)]
struct Hub {
    broadcasts: Arc<Broadcasts>,
    log_id: LogId,
    tails: Arc<StdMutex<Vec<JoinHandle<()>>>>,
}

/// The broadcast of a conversation without events.
fn broadcast(log_id: &LogId) -> Arc<Broadcast> {
    let conversation = Conversation {
        id: "c".to_owned(),
        log_id: log_id.clone(),
        tenant_id: "a".to_owned(),
        owner_id: None,
        agent: String::new(),
        title: None,
        model: None,
        message_count: 0,
        last_sequence: 0,
        created_at: chrono::DateTime::default(),
        active_at: chrono::DateTime::default(),
    };
    let account = Memory::new(&GatewayConfig::default()).account("a");
    Arc::new(Broadcast::new(&conversation, account, 1000))
}

/// Runs a tail that shows nothing.
async fn run(running: RunningTail) {
    while !running.is_done() {
        tokio::select! {
            () = running.broadcast().asked() => {}
            () = running.lingered() => {}
        }
    }
}

impl Hub {
    /// A hub whose tails end as soon as they have no reader.
    fn new() -> Self {
        Self {
            broadcasts: Broadcasts::new(Duration::ZERO),
            log_id: LogId::from("log".to_owned()),
            tails: Arc::default(),
        }
    }

    /// Opens a reader, as the product's hub does.
    fn open(&self) -> Arc<Broadcast> {
        self.broadcasts.enter(&self.log_id, || {
            let broadcast = broadcast(&self.log_id);
            let running = RunningTail::new(Arc::clone(&self.broadcasts), Arc::clone(&broadcast));
            self.tails.lock().unwrap().push(spawn(run(running)));
            broadcast
        })
    }

    /// Waits for the end of every tail.
    fn ends(&self) {
        let tails = std::mem::take(&mut *self.tails.lock().unwrap());
        for tail in tails {
            block_on(tail).unwrap();
        }
        assert_eq!(
            self.broadcasts.len(),
            0,
            "the broadcast of an ended tail is left"
        );
    }
}

/// Subscribes a reader that has every event.
fn subscribe(broadcast: &Broadcast) -> Result<u64, ReaderEnd> {
    match broadcast.subscribe(0, true) {
        Subscribed::Yes { id, .. } => Ok(id),
        Subscribed::Over(end) => Err(end),
        Subscribed::Behind { .. } => panic!("no event was shown"),
    }
}

/// A reader that comes while the last reader leaves has a running tail. Every tail ends after its last reader.
pub fn a_tail_runs_while_it_has_readers() {
    in_many_orders(|| {
        let hub = Hub::new();
        let reads = || {
            let hub = hub.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let broadcast = hub.open();
                    let subscription = subscribe(&broadcast).expect("the tail has ended");
                    broadcast.leave(Some(subscription));
                }
            })
        };
        for reader in [reads(), reads()] {
            reader.join().unwrap();
        }
        hub.ends();
    });
}

/// The readers of a removed conversation learn of the removal. Readers that come later share one new tail, and the end
/// of the old tail changes nothing for the readers of the new tail.
pub fn the_end_of_an_old_tail_leaves_the_new_tail_alone() {
    in_many_orders(|| {
        let hub = Hub::new();
        let first = hub.open();
        let forgets = hub.clone();
        let forgets = thread::spawn(move || {
            if let Some(broadcast) = forgets.broadcasts.get(&forgets.log_id) {
                broadcast.end(ReaderEnd::Deleted);
            }
        });
        let comes = hub.clone();
        let comes = thread::spawn(move || {
            let (broadcast, again) = (comes.open(), comes.open());
            let is_shared = Arc::ptr_eq(&broadcast, &again);
            assert!(is_shared || broadcast.has_ended(), "two tails run");
            for broadcast in [broadcast, again] {
                if let Err(end) = subscribe(&broadcast) {
                    assert_eq!(end, ReaderEnd::Deleted);
                }
                broadcast.leave(None);
            }
        });
        forgets.join().unwrap();
        comes.join().unwrap();
        if let Err(end) = subscribe(&first) {
            assert_eq!(end, ReaderEnd::Deleted);
        }
        // The first reader is slow to leave. The end of its tail does not wait for the reader.
        hub.ends();
        first.leave(None);
    });
}

/// Takes the frames of a subscription up to the event `last`. The frames must begin after `cursor`, and have no gap.
async fn takes(queue: &ReaderQueue, mut cursor: u32, last: u32) {
    while cursor < last {
        let frame = queue.next().await.expect("the queue has ended");
        assert_eq!(sequence(&frame), cursor + 1, "a gap or a repetition");
        cursor += 1;
    }
}

/// A reader that subscribes while the tail shows events gets every event once: from the store up to the tail's position,
/// then from the tail.
pub fn a_reader_that_joins_gets_every_event_once() {
    const LAST: u32 = 4;
    in_many_orders(|| {
        let broadcast = broadcast(&LogId::from("log".to_owned()));
        let stored = Arc::new(AtomicU32::new(0));
        let reads = || {
            let (broadcast, stored) = (Arc::clone(&broadcast), Arc::clone(&stored));
            spawn(async move {
                broadcast.enter();
                let mut cursor = 0;
                let (id, queue) = loop {
                    match broadcast.subscribe(cursor, true) {
                        Subscribed::Yes { id, queue } => break (id, queue),
                        Subscribed::Behind { last_sequence } => {
                            cursor = stored.load(SeqCst);
                            assert!(
                                cursor >= last_sequence,
                                "an event was shown before its save"
                            );
                        }
                        Subscribed::Over(end) => panic!("{end:?}"),
                    }
                };
                takes(&queue, cursor, LAST).await;
                broadcast.leave(Some(id));
            })
        };
        let readers = [reads(), reads()];
        for number in 1..=LAST {
            stored.store(number, SeqCst);
            broadcast.show_events(vec![event(number)]);
        }
        for reader in readers {
            block_on(reader).unwrap();
        }
    });
}

/// A reader has more events than the tail, because another gateway was quicker. The reader's subscription alone makes the
/// tail read the store, and the reader gets only later events.
pub fn a_reader_ahead_of_the_tail_wakes_the_tail() {
    in_many_orders(|| {
        let broadcast = broadcast(&LogId::from("log".to_owned()));
        let shown = Arc::clone(&broadcast);
        let tail = spawn(async move {
            loop {
                shown.asked().await;
                if shown.is_behind_a_reader() {
                    shown.show_events(vec![event(1), event(2)]);
                    return shown.show_events(vec![event(3)]);
                }
            }
        });
        broadcast.enter();
        let Subscribed::Yes { id, queue } = broadcast.subscribe(2, true) else {
            panic!("the reader has no subscription");
        };
        block_on(takes(&queue, 2, 3));
        broadcast.leave(Some(id));
        block_on(tail).unwrap();
    });
}
