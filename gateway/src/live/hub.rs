//! One live tail per conversation, however many readers (invariant 8, a cursor never expires).
//!
//! The first reader starts it; it reads the store once per announcement and shows each frame, rendered once, to all. A
//! reader replays pages of its own until it is where the tail is, and then subscribes: under one lock it gets the texts
//! open at exactly that point, and every frame after it. A tail that nobody has read for a while ends.
//!
//! Must not be here: HTTP; the order of events and texts, which the tail decides.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_proto::LogId;
use everturn_store::{Access, Conversation, EventReader};
use everturn_stream::StreamReader;

use super::{
    broadcast::Broadcast, cursor::Cursor, end::ReaderEnd, log::LogCursor, reader::LiveReader,
    tail::Tail, watcher::Watcher,
};
use crate::{config::GatewayConfig, deliveries::Deliveries, limits::memory::Memory};

/// Holds the live tails of a gateway. Clones share them.
#[derive(Clone)]
pub struct LiveHub {
    shared: Arc<SharedHub>,
}

struct SharedHub {
    events: Arc<dyn EventReader>,
    stream: Arc<dyn StreamReader>,
    deliveries: Option<Arc<dyn Deliveries>>,
    watcher: Watcher,
    memory: Arc<Memory>,
    /// Bytes that may wait for one reader; see [`GatewayConfig::reader_buffer`].
    reader_buffer: usize,
    /// How long a tail runs on without readers; see [`GatewayConfig::linger`].
    linger: Duration,
    /// The broadcasts by log, because a conversation that has the id of a removed one is another conversation. There
    /// are no more of them than readers now and readers who left within `linger`.
    broadcasts: Mutex<HashMap<LogId, Arc<Broadcast>>>,
}

impl LiveHub {
    /// Makes a hub without tails.
    pub fn new(
        events: Arc<dyn EventReader>,
        stream: Arc<dyn StreamReader>,
        config: &GatewayConfig,
    ) -> Self {
        Self::telling(events, stream, None, Memory::new(config), config)
    }

    /// Makes a hub as [`LiveHub::new`] does, which also tells `deliveries` what readers were shown. What is held for them
    /// counts in `memory`.
    pub(crate) fn telling(
        events: Arc<dyn EventReader>,
        stream: Arc<dyn StreamReader>,
        deliveries: Option<Arc<dyn Deliveries>>,
        memory: Arc<Memory>,
        config: &GatewayConfig,
    ) -> Self {
        let watcher = Watcher::new(Arc::clone(&events), config.poll_interval);
        let shared = SharedHub {
            events,
            stream,
            deliveries,
            watcher,
            memory,
            reader_buffer: config.reader_buffer,
            linger: config.linger,
            broadcasts: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Makes a reader that has every event up to `cursor`. When the log turns out to be another one than the cursor's,
    /// the reader begins anew at the last event that both have in common. `access` is the reader's own, and must see the
    /// conversation. Must be called within a tokio runtime.
    pub fn open(&self, access: Access, conversation: &Conversation, cursor: Cursor) -> LiveReader {
        let log = self.shared.log(access, conversation, cursor);
        let mut broadcasts = self.shared.lock();
        let broadcast = match broadcasts.get(&conversation.log_id) {
            Some(broadcast) if !broadcast.has_ended() => Arc::clone(broadcast),
            _ => {
                let broadcast = self.start_tail(conversation);
                broadcasts.insert(conversation.log_id.clone(), Arc::clone(&broadcast));
                broadcast
            }
        };
        let log = log.counted_to(Arc::clone(broadcast.account()));
        // The reader is counted under the lock, so that the tail cannot end before.
        LiveReader::new(log, broadcast)
    }

    /// Ends the tail of a conversation that was removed, and has the stream forget its texts. Tails at other gateways
    /// end when their next query of the store does not find it.
    pub async fn forget(&self, log_id: &LogId) {
        let broadcast = self.shared.lock().get(log_id).map(Arc::clone);
        if let Some(broadcast) = broadcast {
            broadcast.end(ReaderEnd::Deleted);
        }
        if let Err(error) = self.shared.stream.forget(log_id).await {
            tracing::warn!(%error, %log_id, "texts of a removed conversation stay in the stream until they expire");
        }
    }

    /// The number of tails that run now, for metrics and tests.
    pub fn tails(&self) -> usize {
        self.shared.lock().len()
    }

    /// The bytes that are held for tenants now, for tests.
    pub fn held_bytes(&self) -> usize {
        self.shared.memory.held()
    }

    /// Starts a tail for all readers of the conversation, after its last event. Readers read the earlier events by
    /// themselves.
    fn start_tail(&self, conversation: &Conversation) -> Arc<Broadcast> {
        let shared = Arc::clone(&self.shared);
        let account = shared.memory.account(&conversation.tenant_id);
        let broadcast = Broadcast::new(conversation, account, shared.reader_buffer);
        let broadcast = Arc::new(broadcast);
        let access = Access::tenant(&conversation.tenant_id);
        let log = shared.log(access, conversation, Cursor::at(conversation.last_sequence));
        let stream = Arc::clone(&shared.stream);
        let deliveries = shared.deliveries.clone();
        let tail = Tail::new(
            log,
            stream,
            deliveries,
            Arc::clone(&broadcast),
            &shared.watcher,
        );
        let task = TailTask {
            shared,
            broadcast: Arc::clone(&broadcast),
        };
        tokio::spawn(task.run(tail));
        broadcast
    }
}

impl SharedHub {
    fn log(&self, access: Access, conversation: &Conversation, cursor: Cursor) -> LogCursor {
        let (events, pace) = (Arc::clone(&self.events), self.watcher.interval());
        LogCursor::new(events, access, conversation.log(), cursor, pace)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LogId, Arc<Broadcast>>> {
        self.broadcasts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs one tail. However it ends, its readers are told.
struct TailTask {
    shared: Arc<SharedHub>,
    broadcast: Arc<Broadcast>,
}

impl TailTask {
    async fn run(self, mut tail: Tail) {
        while !self.is_done() {
            tokio::select! {
                stepped = tail.step() => if let Err(error) = stepped {
                    let conversation_id = self.broadcast.conversation_id();
                    tracing::info!(%error, conversation_id, "a live tail ends");
                    return self.broadcast.end(ReaderEnd::from(&error));
                },
                () = self.broadcast.asked() => {
                    if self.broadcast.is_behind_a_reader() {
                        tail.look();
                    }
                }
                () = self.broadcast.lingered(self.shared.linger) => {}
            }
        }
    }

    /// True when the tail was ended, or nobody has read it for long. It is then removed from the hub.
    fn is_done(&self) -> bool {
        let mut broadcasts = self.shared.lock();
        let is_done = self.broadcast.is_over(self.shared.linger);
        if is_done {
            self.remove_from(&mut broadcasts);
        }
        is_done
    }

    fn remove_from(&self, broadcasts: &mut HashMap<LogId, Arc<Broadcast>>) {
        let log_id = &self.broadcast.log().id;
        if broadcasts
            .get(log_id)
            .is_some_and(|held| Arc::ptr_eq(held, &self.broadcast))
        {
            broadcasts.remove(log_id);
        }
    }
}

impl Drop for TailTask {
    fn drop(&mut self) {
        self.remove_from(&mut self.shared.lock());
        // Only the first end counts; this one is for a task that panicked or was dropped.
        self.broadcast.end(ReaderEnd::Unreadable);
    }
}
