//! One live tail per conversation for any number of readers (invariant 8, a cursor never expires).
//!
//! The first reader starts the tail. The tail reads the store once per announcement, renders a frame once, and shows
//! the frame to every reader. A reader replays its own pages up to the tail's position and then subscribes. Under one
//! lock, the new subscriber receives the texts that are open at its position, and every later frame. A tail without
//! readers ends after the linger time.
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

/// Holds the live tails of a gateway. Clones share the tails.
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
    /// The most bytes in the queue of one reader; see [`GatewayConfig::reader_buffer`].
    reader_buffer: usize,
    /// The time until a tail without readers ends; see [`GatewayConfig::linger`].
    linger: Duration,
    /// The broadcasts by log id. The key is not the conversation id, because a conversation made anew with the id of a
    /// removed conversation has another log. The map has no more entries than current readers and readers that left
    /// within `linger`.
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

    /// Makes a hub as [`LiveHub::new`] does. The hub also reports shown events to `deliveries`, and counts the readers'
    /// frames and pages in `memory`.
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

    /// Makes a reader that has every event up to `cursor`. If the cursor comes from another log, the reader begins anew
    /// after the last event that is common to the two logs. `access` is the reader's own access and must include the
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
        // The reader is counted under the lock, so the tail cannot end before.
        LiveReader::new(log, broadcast)
    }

    /// Ends the tail of a removed conversation, and removes its texts from the stream. Tails at other gateways end
    /// after their next query of the store.
    pub async fn forget(&self, log_id: &LogId) {
        let broadcast = self.shared.lock().get(log_id).map(Arc::clone);
        if let Some(broadcast) = broadcast {
            broadcast.end(ReaderEnd::Deleted);
        }
        if let Err(error) = self.shared.stream.forget(log_id).await {
            tracing::warn!(%error, %log_id, "texts of a removed conversation stay in the stream until their expiry");
        }
    }

    /// Returns the number of running tails, for metrics and tests.
    pub fn tails(&self) -> usize {
        self.shared.lock().len()
    }

    /// Returns the number of bytes held for tenants, for tests.
    pub fn held_bytes(&self) -> usize {
        self.shared.memory.held()
    }

    /// Starts a tail for all readers of the conversation, after the conversation's last event. Readers replay earlier
    /// events from the store.
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

/// Runs one tail. At the end of the task, also after a panic, the readers learn of the end.
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
                    tracing::info!(%error, conversation_id, "the gateway stops following a conversation");
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

    /// Returns true after the tail's end, or after the linger time without readers. A finished tail leaves the hub.
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
        // Only the first end counts. The end here is for a task that panicked or was dropped.
        self.broadcast.end(ReaderEnd::Unreadable);
    }
}
