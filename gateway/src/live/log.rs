//! Reads a conversation's event log from a cursor, page by page. A tail and a reader's replay read it alike.

use std::{sync::Arc, time::Duration};

use everturn_proto::event::Event;
use everturn_store::{
    Access, ConversationStatus, EventLog, EventPage, EventReader, PageLimit, StoreError,
};
use tokio::time::sleep;

/// The most that is read at a time, which bounds what a tail or a reader holds: 5000 readers that replay at once hold
/// some 1.3 GB at the most, and of ordinary events a tenth of that.
const PAGE: PageLimit = PageLimit {
    rows: 200,
    bytes: 256 * 1024,
};

/// How many events before the cursor are looked at for those that replaced a text.
const PAST: u32 = 200;

/// How many reads may fail in a row, one in each `pace`, before readers are told to come back later.
const MAX_FAILURES: u32 = 30;

/// A place in a conversation's event log, from which the log is read on.
pub(super) struct LogCursor {
    events: Arc<dyn EventReader>,
    access: Access,
    log: EventLog,
    /// The last event that was read.
    sequence: u32,
    /// The time between two tries of a read that failed.
    pace: Duration,
    failures: u32,
}

impl LogCursor {
    /// Makes the place behind the event `sequence`.
    pub(super) fn new(
        events: Arc<dyn EventReader>,
        access: Access,
        log: EventLog,
        sequence: u32,
        pace: Duration,
    ) -> Self {
        Self {
            events,
            access,
            log,
            sequence,
            pace,
            failures: 0,
        }
    }

    /// The number of the last event that was read.
    pub(super) fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Reads the events behind the cursor and moves it. The log is known to reach `known_last`, so a page without any
    /// of the events up to there is one of a replica that is late, or of a conversation that was removed just now.
    ///
    /// `None`: the read failed, and a while has passed; try again. Cancel safe.
    pub(super) async fn next_page(
        &mut self,
        known_last: u32,
    ) -> Result<Option<EventPage>, StoreError> {
        let page = match self.read(self.sequence.saturating_add(1)).await {
            Ok(page) if page.events.is_empty() && self.sequence < known_last => {
                let late = "the event log ends before an event that is known";
                return self.wait_after(StoreError::Unavailable(late.into())).await;
            }
            Ok(page) => page,
            Err(error) => return self.wait_after(error).await,
        };
        self.failures = 0;
        if let Some(last) = page.events.last() {
            self.sequence = last.sequence_number;
        }
        Ok(Some(page))
    }

    /// Reads the last events up to the cursor, and hands them on in pages; `None` as in [`LogCursor::next_page`]. When
    /// it is cancelled or fails, the next call begins anew.
    pub(super) async fn read_past(
        &mut self,
        mut take: impl FnMut(&[Event]),
    ) -> Result<Option<()>, StoreError> {
        let mut from = self.sequence.saturating_sub(PAST).saturating_add(1);
        loop {
            let page = match self.read(from).await {
                Ok(page) => page,
                Err(error) => return self.wait_after(error).await,
            };
            let is_past = |event: &Event| event.sequence_number <= self.sequence;
            let past = page.events.partition_point(is_past);
            take(&page.events[..past]);
            match page.events.last() {
                Some(last) if last.sequence_number < self.sequence && page.has_more => {
                    from = last.sequence_number.saturating_add(1);
                }
                _ => return Ok(Some(())),
            }
        }
    }

    /// Reads where the conversation stands; `None` when its log is gone, also when another conversation has its id now.
    pub(super) async fn conversation_status(
        &self,
    ) -> Result<Option<ConversationStatus>, StoreError> {
        let found = self
            .events
            .conversation_status(&self.access, &self.log.conversation_id)
            .await?;
        Ok(found.filter(|status| status.log_id == self.log.id))
    }

    async fn read(&self, from: u32) -> Result<EventPage, StoreError> {
        self.events
            .events(&self.access, &self.log, from, PAGE)
            .await
    }

    /// Waits for the next try, unless this was the last one.
    async fn wait_after<T>(&mut self, error: StoreError) -> Result<Option<T>, StoreError> {
        self.failures += 1;
        if !error.is_retryable() || self.failures >= MAX_FAILURES {
            return Err(error);
        }
        tracing::debug!(%error, failures = self.failures, "readers wait for the event log");
        sleep(self.pace).await;
        Ok(None)
    }
}
