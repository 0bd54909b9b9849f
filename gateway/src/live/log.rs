//! Reads a conversation's event log from a cursor, page by page. A tail and a reader's replay read it alike.

use std::{sync::Arc, time::Duration};

use everturn_proto::event::Event;
use everturn_store::{
    Access, ConversationHead, EventLog, EventPage, EventReader, Missing, PageLimit, StoreError,
};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::cursor::Cursor;
use crate::limits::memory::{Account, Held};

/// The most that is read at a time. A tail or a reader holds two pages, and a reader only what its tenant has memory for.
const PAGE: PageLimit = PageLimit {
    rows: 500,
    bytes: 128 * 1024,
};

/// The memory that a page takes while it is read: the largest event, and its frame.
const READ_ROOM: usize = 2 * 1024 * 1024;

/// How many events before the cursor are looked at for those that replaced a text.
const PAST: u32 = 200;

/// How many reads may fail in a row, one in each `pace`, before readers are told to come back later.
const MAX_FAILURES: u32 = 30;

/// What was read at a cursor.
pub(super) enum Read {
    /// The events behind it.
    Page(EventPage),
    /// Another log was read up to the cursor: this one has all events up to `common` in common with that one, and the
    /// cursor is there now.
    Lost {
        /// The sequence number; 0 when there is no such event.
        common: u32,
    },
}

/// A place in a conversation's event log, from which the log is read on.
pub(super) struct LogCursor {
    events: Arc<dyn EventReader>,
    access: Access,
    log: EventLog,
    /// What the pages are counted to; `None` for a tail, which shows a page at once and holds none.
    account: Option<Arc<Account>>,
    /// What the page that was read last holds.
    held: Option<Held>,
    /// The last event that was read.
    cursor: Cursor,
    /// True while the log is known to have that event.
    is_checked: bool,
    /// The time between two tries of a read that failed.
    pace: Duration,
    failures: u32,
    /// The page behind the one that was read last, while there is one.
    ahead: Option<Ahead>,
}

/// A page that is read while the one before it is written to the reader. Dropping it ends the read.
struct Ahead {
    from: u32,
    page: AbortOnDropHandle<Result<CountedPage, StoreError>>,
}

/// A page, and what it holds.
type CountedPage = (EventPage, Option<Held>);

impl LogCursor {
    /// Makes the place of the cursor.
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

    /// Counts pages to the account, and waits before each while the account has no memory left.
    pub(super) fn counted_to(self, account: Arc<Account>) -> Self {
        Self {
            account: Some(account),
            ..self
        }
    }

    /// Waits until its account has memory. Nothing is held meanwhile: a page that was read ahead is not waited for, but taken.
    pub(super) async fn has_room(&mut self) {
        self.held = None;
        if let Some(account) = self.account.as_ref().filter(|_| self.ahead.is_none()) {
            account.has_room().await;
        }
    }

    /// Reads no more for now, and holds nothing.
    pub(super) fn rest(&mut self) {
        (self.held, self.ahead) = (None, None);
    }

    /// Moves to an event that came another way.
    pub(super) fn move_to(&mut self, cursor: Cursor) {
        self.cursor = cursor;
    }

    /// The number of the last event that was read.
    pub(super) fn sequence(&self) -> u32 {
        self.cursor.sequence
    }

    /// True when the log was found to have the event at the cursor.
    pub(super) fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Says that time passes: the log may have lost the event at the cursor when it is read again.
    pub(super) fn doubt(&mut self) {
        self.is_checked = self.cursor.sequence == 0;
    }

    /// Reads the events behind the cursor and moves it. The log is known to reach `known_last`, so a page without any
    /// of the events up to there is one of a replica that is late, or of a conversation that was removed just now.
    ///
    /// In doubt, the event at the cursor is read again, so that a log which has lost it is noticed.
    ///
    /// `None`: the read failed, and a while has passed; try again. Cancel safe.
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
            let late = "the event log ends before an event that is known";
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

    /// Moves the cursor to the last event that this log has in common with the one that the cursor is of. Nothing is
    /// lost when the conversation is gone, or may be gone.
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
            // A plain number that is larger than any: nothing is known of what the reader has.
            None => 0,
        };
        self.cursor = Cursor::at(common);
        self.doubt();
        Ok(Read::Lost { common })
    }

    /// Reads the last events up to the cursor, and hands them on in pages; `None` as in [`LogCursor::next_page`]. When
    /// it is cancelled or fails, the next call begins anew.
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

    /// Reads where the conversation stands; `None` when its log is gone, also when another conversation has its id now.
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

    /// Begins to read what is behind the cursor, if there is memory.
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

/// Counts what a page holds, its frames included.
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
