//! Reads a conversation's event log from a cursor, page by page, for a tail or for a reader's replay.

use std::{sync::Arc, time::Duration};

use everturn_proto::event::Event;
use everturn_store::{
    Access, ConversationHead, EventLog, EventPage, EventReader, Missing, PageLimit, StoreError,
};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::cursor::Cursor;
use crate::limits::memory::{Account, Held};

/// The largest page. A tail or a reader holds two pages at most. A reader waits until its tenant has memory for a page.
const PAGE: PageLimit = PageLimit {
    rows: 500,
    bytes: 128 * 1024,
};

/// The memory reserved for a page during its read: the largest event and the event's frame, in bytes.
const READ_ROOM: usize = 2 * 1024 * 1024;

/// The number of events before the cursor to search for events that replaced a text.
const PAST: u32 = 200;

/// The number of failed reads in a row, `pace` apart, before the gateway tells readers to come back later.
const MAX_FAILURES: u32 = 30;

/// The result of a read at a cursor.
pub(super) enum Read {
    /// The events after the cursor.
    Page(EventPage),
    /// The cursor comes from another log. The log at hand and the other log have the events up to `common` in common.
    /// The cursor has moved to `common`.
    Lost {
        /// The sequence number of the last common event; 0 without a common event.
        common: u32,
    },
}

/// A position in a conversation's event log, and a reader of the pages after the position.
pub(super) struct LogCursor {
    events: Arc<dyn EventReader>,
    access: Access,
    log: EventLog,
    /// The account that pages count to; `None` for a tail, because a tail shows a page at once and keeps no page.
    account: Option<Arc<Account>>,
    /// The memory of the last page.
    held: Option<Held>,
    /// The position after the last event read.
    cursor: Cursor,
    /// True while the log is known to have the event at the cursor.
    is_checked: bool,
    /// The pause before a retry of a failed read.
    pace: Duration,
    failures: u32,
    /// The read of the page after the last page, while a read-ahead is active.
    ahead: Option<Ahead>,
}

/// A read-ahead: a page read while the reader receives the page before. Dropping the read-ahead ends the read.
struct Ahead {
    from: u32,
    page: AbortOnDropHandle<Result<CountedPage, StoreError>>,
}

/// A page and its reserved memory.
type CountedPage = (EventPage, Option<Held>);

impl LogCursor {
    /// Makes a log cursor at `cursor`.
    pub(super) fn new(
        events: Arc<dyn EventReader>,
        access: Access,
        log: EventLog,
        cursor: Cursor,
        pace: Duration,
    ) -> Self {
        Self {
            events,
            access,
            log,
            account: None,
            held: None,
            cursor,
            is_checked: cursor.sequence == 0,
            pace,
            failures: 0,
            ahead: None,
        }
    }

    /// Counts pages to the account. Before a page, the log cursor waits while the account has no memory left.
    pub(super) fn counted_to(self, account: Arc<Account>) -> Self {
        Self {
            account: Some(account),
            ..self
        }
    }

    /// Waits until the account has memory. The log cursor holds no page during the wait. With a read-ahead, the log
    /// cursor does not wait.
    pub(super) async fn has_room(&mut self) {
        self.held = None;
        if let Some(account) = self.account.as_ref().filter(|_| self.ahead.is_none()) {
            account.has_room().await;
        }
    }

    /// Stops reading for now, and frees the held page and the read-ahead.
    pub(super) fn rest(&mut self) {
        (self.held, self.ahead) = (None, None);
    }

    /// Moves to the cursor of an event that came from the live tail.
    pub(super) fn move_to(&mut self, cursor: Cursor) {
        self.cursor = cursor;
    }

    /// Returns the sequence number of the last event read.
    pub(super) fn sequence(&self) -> u32 {
        self.cursor.sequence
    }

    /// Returns true when the log is known to have the event at the cursor.
    pub(super) fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Marks the cursor as unchecked, because the log may lose the event at the cursor before the next read.
    pub(super) fn doubt(&mut self) {
        self.is_checked = self.cursor.sequence == 0;
    }

    /// Reads the events after the cursor and moves the cursor. The log is known to reach `known_last`. Therefore an
    /// empty page before `known_last` comes from a late replica, or from a conversation removed just now.
    ///
    /// While the cursor is unchecked, the read includes the event at the cursor, to notice a log without the event.
    ///
    /// Returns `None` after a failed read and a pause; the caller tries again. Cancel safe.
    pub(super) async fn next_page(&mut self, known_last: u32) -> Result<Option<Read>, StoreError> {
        match self.read_on(known_last).await {
            Ok(read) => Ok(Some(read)),
            Err(error) => self.wait_after(error).await,
        }
    }

    async fn read_on(&mut self, known_last: u32) -> Result<Read, StoreError> {
        let at = self.cursor.sequence;
        let behind = at.saturating_add(1);
        let mut page = self.read(if self.is_checked { behind } else { at }).await?;
        if !self.is_checked {
            match page.events.first() {
                Some(event) if self.cursor.fits(event) => self.cursor = Cursor::behind(event),
                found => {
                    let is_empty = found.is_none();
                    return self.lost(is_empty).await;
                }
            }
            page.events.remove(0);
            // The event at the cursor has filled the page.
            if page.events.is_empty() && page.has_more {
                page = self.read(behind).await?;
            }
        }
        if page.events.is_empty() && at < known_last {
            let late = "the event log ends before a known event";
            return Err(StoreError::Unavailable(late.into()));
        }
        (self.failures, self.is_checked) = (0, true);
        if let Some(last) = page.events.last() {
            self.cursor = Cursor::behind(last);
        }
        if page.has_more {
            self.read_ahead();
        }
        Ok(Read::Page(page))
    }

    /// Moves the cursor to the last event that the log has in common with the cursor's own log. The cursor stays if the
    /// conversation is gone or may be gone.
    async fn lost(&mut self, is_empty: bool) -> Result<Read, StoreError> {
        if is_empty && self.conversation_head().await?.is_none() {
            let id = &self.log.conversation_id;
            return Err(StoreError::not_found(Missing::Conversation, id));
        }
        let common = match self.cursor.saved_by() {
            Some(saved_by) => {
                let at = self.cursor.sequence;
                self.events
                    .last_common(&self.access, &self.log, at, saved_by)
                    .await?
            }
            // The cursor is a plain number, larger than every stored number. The gateway does not know the reader's
            // events.
            None => 0,
        };
        self.cursor = Cursor::at(common);
        self.doubt();
        Ok(Read::Lost { common })
    }

    /// Reads the last events up to the cursor, and passes the events to `take` page by page. `None` means a failed
    /// read, as in [`LogCursor::next_page`]. After a cancellation or a failure, the next call begins anew.
    pub(super) async fn read_past(
        &mut self,
        mut take: impl FnMut(&[Event]),
    ) -> Result<Option<()>, StoreError> {
        let mut from = self.sequence().saturating_sub(PAST).saturating_add(1);
        loop {
            let page = match self.read(from).await {
                Ok(page) => page,
                Err(error) => return self.wait_after(error).await,
            };
            let is_past = |event: &Event| event.sequence_number <= self.sequence();
            let past = page.events.partition_point(is_past);
            take(&page.events[..past]);
            match page.events.last() {
                Some(last) if last.sequence_number < self.sequence() && page.has_more => {
                    from = last.sequence_number.saturating_add(1);
                }
                _ => return Ok(Some(())),
            }
        }
    }

    /// Reads the conversation's head. Returns `None` when the log is gone, also when another conversation has the id
    /// now.
    pub(super) async fn conversation_head(&self) -> Result<Option<ConversationHead>, StoreError> {
        let found = self
            .events
            .conversation_head(&self.access, &self.log.conversation_id)
            .await?;
        Ok(found.filter(|status| status.log_id == self.log.id))
    }

    async fn read(&mut self, from: u32) -> Result<EventPage, StoreError> {
        self.held = None;
        if let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.from == from) {
            let read = (&mut ahead.page).await;
            self.ahead = None;
            if let Ok(read) = read {
                let (page, held) = read?;
                self.held = held;
                return Ok(page);
            }
        }
        self.ahead = None;
        let room = match &self.account {
            Some(account) => Some(account.room(READ_ROOM).await),
            None => None,
        };
        let page = self.events.events(&self.access, &self.log, from, PAGE);
        let (page, held) = counted(page.await?, room);
        self.held = held;
        Ok(page)
    }

    /// Starts the read of the page after the cursor, if the account has memory.
    fn read_ahead(&mut self) {
        let room = match &self.account {
            Some(account) => match account.try_room(READ_ROOM) {
                None => return,
                room => room,
            },
            None => None,
        };
        let (events, access, log) = (self.events.clone(), self.access.clone(), self.log.clone());
        let from = self.cursor.sequence.saturating_add(1);
        let read = async move {
            let page = events.events(&access, &log, from, PAGE).await?;
            Ok(counted(page, room))
        };
        let page = AbortOnDropHandle::new(tokio::spawn(read));
        self.ahead = Some(Ahead { from, page });
    }

    /// Waits before the next try, or returns the error after the last try.
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

/// Sets the reserved memory to the size of the page, frames included.
fn counted(page: EventPage, mut room: Option<Held>) -> CountedPage {
    if let Some(room) = &mut room {
        let data = |event: &Event| {
            event
                .event_data
                .as_ref()
                .map_or(0, |data| data.as_str().len())
        };
        let of = |event: &Event| 2 * data(event) + size_of::<Event>();
        room.set(page.events.iter().map(of).sum());
    }
    (page, room)
}
