//! One live tail per conversation for any number of readers (invariant 8, a cursor never expires).
//!
//! The first reader starts the tail. The tail reads the store once per announcement, renders a frame once, and shows
//! the frame to every reader. A reader replays its own pages up to the tail's position and then subscribes. Under one
//! lock, the new subscriber receives the texts that are open at its position, and every later frame. A tail without
//! readers ends after the linger time.
//!
//! Must not be here: HTTP; the order of events and texts, which the tail decides.

use std::sync::Arc;

use everturn_proto::LogId;
use everturn_store::{Access, Conversation, EventReader};
use everturn_stream::StreamReader;

use super::{
    broadcast::Broadcast,
    broadcasts::{Broadcasts, RunningTail},
    cursor::Cursor,
    end::ReaderEnd,
    log::LogCursor,
    reader::LiveReader,
    tail::Tail,
    watcher::Watcher,
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
    /// The broadcasts; see [`GatewayConfig::linger`].
    broadcasts: Arc<Broadcasts>,
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
            broadcasts: Broadcasts::new(config.linger),
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
        let broadcasts = &self.shared.broadcasts;
        let broadcast = broadcasts.enter(&conversation.log_id, || self.start_tail(conversation));
        let log = log.counted_to(Arc::clone(broadcast.account()));
        LiveReader::new(log, broadcast)
    }

    /// Ends the tail of a removed conversation, and removes its texts from the stream. Tails at other gateways end
    /// after their next query of the store.
    pub async fn forget(&self, log_id: &LogId) {
        if let Some(broadcast) = self.shared.broadcasts.get(log_id) {
            broadcast.end(ReaderEnd::Deleted);
        }
        if let Err(error) = self.shared.stream.forget(log_id).await {
            tracing::warn!(%error, %log_id, "texts of a removed conversation stay in the stream until their expiry");
        }
    }

    /// Returns the number of running tails, for metrics and tests.
    pub fn tails(&self) -> usize {
        self.shared.broadcasts.len()
    }

    /// Returns the number of bytes held for tenants, for tests.
    pub fn held_bytes(&self) -> usize {
        self.shared.memory.held()
    }

    /// Starts a tail for all readers of the conversation, after the conversation's last event. Readers replay earlier
    /// events from the store.
    fn start_tail(&self, conversation: &Conversation) -> Arc<Broadcast> {
        let shared = &self.shared;
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
        let broadcasts = Arc::clone(&shared.broadcasts);
        let running = RunningTail::new(broadcasts, Arc::clone(&broadcast));
        tokio::spawn(run(running, tail));
        broadcast
    }
}

impl SharedHub {
    fn log(&self, access: Access, conversation: &Conversation, cursor: Cursor) -> LogCursor {
        let (events, pace) = (Arc::clone(&self.events), self.watcher.interval());
        LogCursor::new(events, access, conversation.log(), cursor, pace)
    }
}

/// Runs one tail. At the end of the task, also after a panic, the readers learn of the end.
async fn run(running: RunningTail, mut tail: Tail) {
    let broadcast = running.broadcast();
    while !running.is_done() {
        tokio::select! {
            stepped = tail.step() => if let Err(error) = stepped {
                let conversation_id = broadcast.conversation_id();
                tracing::info!(%error, conversation_id, "the gateway stops following a conversation");
                return broadcast.end(ReaderEnd::from(&error));
            },
            () = broadcast.asked() => {
                if broadcast.is_behind_a_reader() {
                    tail.look();
                }
            }
            () = running.lingered() => {}
        }
    }
}
