//! A reader, which replays the events after the cursor and then receives the tail's frames.

use std::{collections::VecDeque, sync::Arc};

use everturn_proto::event::Event;
use everturn_telemetry::gateway as telemetry;

use super::{
    broadcast::{Broadcast, Subscribed},
    end::ReaderEnd,
    frame::LiveFrame,
    log::{LogCursor, Read},
    queue::{QueueEnd, ReaderQueue},
    sse::RenderedFrame,
};
use crate::limits::memory::Account;

/// A reader of one conversation. Dropping the reader affects no other reader and no turn.
pub struct LiveReader {
    /// The log, read with the reader's own access: before the subscription, and again after leaving the tail.
    log: LogCursor,
    broadcast: Arc<Broadcast>,
    page: VecDeque<Event>,
    /// True after the first page since the reader's start, or since it last left the tail.
    has_read: bool,
    subscription: Option<(u64, Arc<ReaderQueue>)>,
}

impl LiveReader {
    /// Makes a reader that has every event up to the position of `log`. The broadcast must have counted the reader in.
    pub(super) fn new(log: LogCursor, broadcast: Arc<Broadcast>) -> Self {
        Self {
            log,
            broadcast,
            page: VecDeque::new(),
            has_read: false,
            subscription: None,
        }
    }

    /// Returns the account that the reader's frames count to.
    pub(super) fn account(&self) -> &Arc<Account> {
        self.broadcast.account()
    }

    /// Returns the name of the reader's conversation.
    pub fn conversation_name(&self) -> &str {
        self.broadcast.conversation_name()
    }

    /// Returns the next frame of the replayed page, without waiting; `None` at the end of the page.
    pub(super) fn replayed(&mut self) -> Option<RenderedFrame> {
        let event = self.page.pop_front()?;
        let frame = LiveFrame::Event(event);
        Some(self.rendered(frame))
    }

    fn rendered(&self, frame: LiveFrame) -> RenderedFrame {
        RenderedFrame::new(self.conversation_name(), frame, self.account())
    }

    /// Takes the next frame of the subscription; `None` after the reader has left the tail.
    async fn subscribed(
        &mut self,
        queue: &ReaderQueue,
    ) -> Option<Result<Arc<RenderedFrame>, ReaderEnd>> {
        match queue.next().await {
            Ok(frame) => {
                if let Some(cursor) = frame.cursor {
                    self.log.move_to(cursor);
                }
                Some(Ok(frame))
            }
            Err(QueueEnd::Over(end)) => Some(Err(end)),
            // The reader continues like a reconnected client.
            Err(QueueEnd::SetBack) => {
                telemetry::over_memory("reader");
                (self.subscription, self.has_read) = (None, false);
                self.log.doubt();
                None
            }
        }
    }

    /// Waits for the next frame. Cancel safe: dropping the future loses no frame.
    pub async fn next(&mut self) -> Result<Arc<RenderedFrame>, ReaderEnd> {
        loop {
            if let Some(frame) = self.replayed() {
                return Ok(Arc::new(frame));
            }
            if let Some((_, queue)) = &self.subscription {
                let queue = Arc::clone(queue);
                if let Some(next) = self.subscribed(&queue).await {
                    return next;
                }
                continue;
            }
            // A returning reader first reads its last event again, because the log may be another log.
            let known_last = if self.log.is_checked() {
                // Open texts and later frames need memory, too.
                self.log.has_room().await;
                match self.broadcast.subscribe(self.log.sequence(), self.has_read) {
                    Subscribed::Over(end) => return Err(end),
                    Subscribed::Yes { id, queue } => {
                        self.page = VecDeque::new();
                        self.log.rest();
                        self.subscription = Some((id, queue));
                        continue;
                    }
                    Subscribed::Behind { last_sequence } => last_sequence,
                }
            } else {
                self.log.sequence()
            };
            let read = self.log.next_page(known_last).await;
            match read.map_err(|error| ReaderEnd::from(&error))? {
                None => {}
                Some(Read::Page(page)) => {
                    self.broadcast.note_generations(&page.generations);
                    self.page = page.events.into();
                    self.has_read = true;
                }
                Some(Read::Lost { common }) => {
                    let from_sequence = common.saturating_add(1);
                    let frame = LiveFrame::Reset { from_sequence };
                    return Ok(Arc::new(self.rendered(frame)));
                }
            }
        }
    }
}

impl Drop for LiveReader {
    fn drop(&mut self) {
        let subscription = self.subscription.as_ref().map(|(id, _)| *id);
        self.broadcast.leave(subscription);
    }
}
