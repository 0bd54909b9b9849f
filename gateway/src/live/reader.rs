//! One reader: first it replays the events after its cursor, and then it gets what the tail shows to all.

use std::{collections::VecDeque, sync::Arc};

use everturn_proto::event::Event;

use super::{
    broadcast::{Broadcast, Subscribed},
    end::ReaderEnd,
    frame::LiveFrame,
    log::{LogCursor, Read},
    queue::ReaderQueue,
    sse::RenderedFrame,
};

/// A reader of one conversation. Dropping it affects no other reader and no turn.
pub struct LiveReader {
    /// The log, read with the reader's own access. It is not needed once the reader has subscribed.
    log: LogCursor,
    broadcast: Arc<Broadcast>,
    page: VecDeque<Event>,
    /// True once the reader has read a page.
    has_read: bool,
    subscription: Option<(u64, Arc<ReaderQueue>)>,
}

impl LiveReader {
    /// Makes a reader that has every event up to where `log` stands.
    pub(super) fn new(log: LogCursor, broadcast: Arc<Broadcast>) -> Self {
        broadcast.enter();
        Self {
            log,
            broadcast,
            page: VecDeque::new(),
            has_read: false,
            subscription: None,
        }
    }

    /// Returns the id of the conversation that it reads.
    pub fn conversation_id(&self) -> &str {
        self.broadcast.conversation_id()
    }

    /// Returns the next frame of the page that is being replayed, without waiting; `None` at its end.
    pub(super) fn replayed(&mut self) -> Option<RenderedFrame> {
        let event = self.page.pop_front()?;
        let frame = LiveFrame::Event(event);
        Some(RenderedFrame::new(self.conversation_id(), frame))
    }

    /// Waits for the next frame. Cancel safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<RenderedFrame>, ReaderEnd> {
        loop {
            if let Some(frame) = self.replayed() {
                return Ok(Arc::new(frame));
            }
            if let Some((_, queue)) = &self.subscription {
                return queue.next().await;
            }
            // Who comes back reads at least the event that it has already: the log may be another one.
            let known_last = if self.log.is_checked() {
                match self.broadcast.subscribe(self.log.sequence(), self.has_read) {
                    Subscribed::Over(end) => return Err(end),
                    Subscribed::Yes { id, queue } => {
                        self.page = VecDeque::new();
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
                    return Ok(Arc::new(RenderedFrame::new(self.conversation_id(), frame)));
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
