//! One reader's way: its own replay from its cursor, then a seat at the live tail.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use everturn_proto::event::Event;
use everturn_store::{Access, EventReader, StoreError};

use super::{
    end::End,
    live::{Join, Live},
    queue::Queue,
};
use crate::live::{
    sse::Rendered,
    tail::{Frame, MAX_FAILURES, PAGE},
};

/// A reader of one conversation. Dropping it touches nothing but the reader.
pub struct Reader {
    events: Arc<dyn EventReader>,
    access: Access,
    live: Arc<Live>,
    /// The last event handed out or waiting in `page`; of no use once seated.
    cursor: u32,
    page: VecDeque<Event>,
    seat: Option<(u64, Arc<Queue>)>,
    /// Between two tries of a read that failed.
    pace: Duration,
    failures: u32,
}

impl Reader {
    pub(super) fn new(
        events: Arc<dyn EventReader>,
        access: Access,
        live: Arc<Live>,
        cursor: u32,
        pace: Duration,
    ) -> Self {
        Self {
            events,
            access,
            live,
            cursor,
            page: VecDeque::new(),
            seat: None,
            pace,
            failures: 0,
        }
    }

    /// The conversation it reads.
    pub fn conversation_id(&self) -> &str {
        self.live.conversation_id()
    }

    /// The next frame; waits until there is one. Cancel safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<Rendered>, End> {
        loop {
            if let Some(event) = self.page.pop_front() {
                return Ok(Arc::new(Rendered::new(
                    self.live.conversation_id(),
                    Frame::Event(event),
                )));
            }
            if let Some((_, queue)) = &self.seat {
                return queue.next().await;
            }
            match self.live.join(self.cursor) {
                Join::Over(end) => return Err(end),
                Join::Seated { seat, queue } => {
                    self.page = VecDeque::new();
                    self.seat = Some((seat, queue));
                }
                Join::Behind => self.replay().await?,
            }
        }
    }

    /// Reads one page, or waits a while for the next try.
    async fn replay(&mut self) -> Result<(), End> {
        let from = self.cursor.saturating_add(1);
        match self
            .events
            .events(&self.access, self.live.conversation_id(), from, PAGE)
            .await
        {
            Ok(page) if !page.events.is_empty() => {
                self.cursor = page
                    .events
                    .last()
                    .map_or(self.cursor, |event| event.sequence_number);
                self.page = page.events.into();
                self.failures = 0;
                return Ok(());
            }
            // The tail has read more: a replica of the store is late, or the conversation has just been removed.
            Ok(_) => {}
            Err(error) => self.check(&error)?,
        }
        self.failures += 1;
        if self.failures >= MAX_FAILURES {
            return Err(End::Unreadable);
        }
        tokio::time::sleep(self.pace).await;
        Ok(())
    }

    fn check(&self, error: &StoreError) -> Result<(), End> {
        tracing::debug!(%error, failures = self.failures, "a reader waits for the store");
        if error.is_retryable() {
            Ok(())
        } else {
            Err(End::from(error))
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.live.leave(self.seat.as_ref().map(|(seat, _)| *seat));
    }
}
