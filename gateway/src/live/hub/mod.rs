//! One live tail per conversation, however many readers (invariant 8).
//!
//! The first reader starts it; it reads the store once per announcement and hands each frame, rendered once, to all.
//! A reader replays pages of its own until it is where the tail is, and then takes a seat: under one lock it gets the
//! texts open at exactly that point, and every frame after it. A tail that nobody has read for a while ends.
//!
//! - `reader`: one reader's way from its cursor to its seat
//! - `live`: what the tail has handed out so far, and who sits there
//! - `screen`: the open texts of whoever has seen every frame so far
//! - `queue`: what one reader has not taken yet, bounded
//! - `end`: why a reader gets no more
//!
//! Must not be here: HTTP; the order of events and texts, which is the tail's matter.

mod end;
mod live;
mod queue;
mod reader;
mod screen;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_store::{Access, Conversation, EventReader};
use everturn_stream::StreamReader;

pub use self::{end::End, reader::Reader};

use self::live::Live;
use crate::{
    config::GatewayConfig,
    live::{tail::Tail, watcher::Watcher},
};

/// The live tails of a gateway. Clones share them.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    events: Arc<dyn EventReader>,
    stream: Arc<dyn StreamReader>,
    watcher: Watcher,
    /// See [`GatewayConfig::reader_buffer`].
    reader_buffer: usize,
    /// See [`GatewayConfig::linger`].
    linger: Duration,
    /// By conversation id. No more than there are readers, and those who left within `linger`.
    tails: Mutex<HashMap<String, Arc<Live>>>,
}

impl Hub {
    /// A hub without tails.
    pub fn new(
        events: Arc<dyn EventReader>,
        stream: Arc<dyn StreamReader>,
        config: &GatewayConfig,
    ) -> Self {
        let watcher = Watcher::new(Arc::clone(&events), config.poll_interval);
        let (reader_buffer, linger, tails) =
            (config.reader_buffer, config.linger, Mutex::default());
        Self {
            inner: Arc::new(Inner {
                events,
                stream,
                watcher,
                reader_buffer,
                linger,
                tails,
            }),
        }
    }

    /// A reader that has every event up to `cursor`. `access` is the reader's own, and must see the conversation. Must
    /// be called within a tokio runtime.
    pub fn open(&self, access: Access, conversation: &Conversation, cursor: u32) -> Reader {
        let mut tails = self.inner.lock();
        let live = match tails.get(&conversation.id) {
            Some(live) if live.is_of(conversation) => Arc::clone(live),
            replaced => {
                // Removed and created anew between two looks: what comes now is not for those who read the old one.
                if let Some(live) = replaced {
                    live.end(End::Deleted);
                }
                let live = Arc::new(Live::new(conversation, self.inner.reader_buffer));
                tails.insert(conversation.id.clone(), Arc::clone(&live));
                let tailing = Tailing {
                    inner: Arc::clone(&self.inner),
                    live: Arc::clone(&live),
                };
                tokio::spawn(tailing.run(self.tail(conversation)));
                live
            }
        };
        live.enter();
        drop(tails);
        let pace = self.inner.watcher.interval();
        Reader::new(Arc::clone(&self.inner.events), access, live, cursor, pace)
    }

    /// Conversations tailed now, for metrics and tests.
    pub fn tails(&self) -> usize {
        self.inner.lock().len()
    }

    /// A tail for all readers of the conversation, from its end on: what is before, readers read for themselves.
    fn tail(&self, conversation: &Conversation) -> Tail {
        let (events, stream) = (
            Arc::clone(&self.inner.events),
            Arc::clone(&self.inner.stream),
        );
        let access = Access::tenant(&conversation.tenant_id);
        Tail::new(
            events,
            stream,
            access,
            &conversation.id,
            conversation.last_sequence,
            &self.inner.watcher,
        )
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Live>>> {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(tails: &mut HashMap<String, Arc<Live>>, live: &Arc<Live>) {
        if tails
            .get(live.conversation_id())
            .is_some_and(|held| Arc::ptr_eq(held, live))
        {
            tails.remove(live.conversation_id());
        }
    }
}

/// The task of one tail. However it ends, its readers learn of it.
struct Tailing {
    inner: Arc<Inner>,
    live: Arc<Live>,
}

impl Tailing {
    async fn run(self, mut tail: Tail) {
        while !self.is_done() {
            tokio::select! {
                next = tail.next() => match next {
                    Ok(frame) => {
                        let ready = std::iter::from_fn(|| tail.next_ready());
                        self.live.hand_out(std::iter::once(frame).chain(ready));
                    }
                    Err(error) => {
                        tracing::info!(%error, conversation_id = self.live.conversation_id(), "a live tail ends");
                        return self.live.end(End::from(&error));
                    }
                },
                () = self.live.asked() => {
                    if self.live.is_behind_a_reader() {
                        tail.look();
                    }
                }
                () = self.live.lingered(self.inner.linger) => {}
            }
        }
    }

    /// True when the tail was ended, or nobody has read it for long; then nobody finds it any more.
    fn is_done(&self) -> bool {
        let mut tails = self.inner.lock();
        let is_done = self.live.is_over(self.inner.linger);
        if is_done {
            Inner::remove(&mut tails, &self.live);
        }
        is_done
    }
}

impl Drop for Tailing {
    fn drop(&mut self) {
        Inner::remove(&mut self.inner.lock(), &self.live);
        // The first end stands; this one is for a task that panicked or was dropped.
        self.live.end(End::Unreadable);
    }
}
