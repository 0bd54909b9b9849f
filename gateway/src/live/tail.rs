//! Joins the event replay with the texts in progress: every event after a cursor, once and in order, and then the open
//! texts (invariant 8, a cursor never expires). New readers, returning readers and retried steps take one common path.
//!
//! The order matters. The tail first follows the stream and then reads the store up to the last event. After the last
//! event, the tail shows the open texts that no event has replaced, and then passes on deltas. An announcement only
//! triggers a read of the store; events never come from the stream.
//!
//! Must not be here: single readers, which the broadcast serves.

use std::{sync::Arc, time::Duration};

use everturn_proto::event::Event;
use everturn_store::{Missing, StoreError};
use everturn_stream::{Item, OpenText, StreamError, StreamReader};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{
    broadcast::Broadcast,
    log::{LogCursor, Read},
    open_texts::MissingPiece,
    watcher::{News, WatchedConversation, Watcher},
};
use crate::deliveries::{DeliveredEvent, Deliveries};

/// The shortest time between two tries to follow. A stream may cut its followers at once, and the tail must not loop
/// without a pause.
const MIN_FOLLOWED: Duration = Duration::from_millis(50);

/// Reads one conversation and shows frames to the conversation's readers.
pub(super) struct Tail {
    stream: Arc<dyn StreamReader>,
    log: LogCursor,
    deliveries: Option<Arc<dyn Deliveries>>,
    broadcast: Arc<Broadcast>,
    items: Option<mpsc::Receiver<Item>>,
    /// The open texts at the start of following. The tail shows the texts after the last event.
    snapshot: Vec<OpenText>,
    /// False after an error of the stream, until the next try is due.
    may_follow: bool,
    followed_at: Instant,
    /// The earliest time of the next try to follow the stream.
    follow_at: Instant,
    /// The pause before a new try, when the stream is present and following fails.
    pace: Duration,
    is_behind: bool,
    /// True until the tail has searched the events before the first cursor for events that replaced texts.
    is_past_unknown: bool,
    /// Reports events in the store without an announcement.
    watched: WatchedConversation,
}

impl Tail {
    /// Makes a tail that begins at the position of `log`. Must be called within a tokio runtime.
    pub(super) fn new(
        log: LogCursor,
        stream: Arc<dyn StreamReader>,
        deliveries: Option<Arc<dyn Deliveries>>,
        broadcast: Arc<Broadcast>,
        watcher: &Watcher,
    ) -> Self {
        Self {
            watched: watcher.watch(broadcast.log()),
            pace: watcher.interval(),
            is_past_unknown: log.sequence() > 0,
            stream,
            deliveries,
            log,
            broadcast,
            items: None,
            snapshot: Vec::new(),
            may_follow: true,
            followed_at: Instant::now(),
            follow_at: Instant::now(),
            is_behind: true,
        }
    }

    /// Makes the next [`Tail::step`] read the store, because a reader knows events that were not announced here.
    pub(super) fn look(&mut self) {
        self.is_behind = true;
    }

    /// Performs the next action: follows the stream, reads the store, or waits for news. The error
    /// [`StoreError::NotFound`] means a removed conversation. After any other error, readers should come back later.
    /// Cancel safe: dropping the future loses no item.
    pub(super) async fn step(&mut self) -> Result<(), StoreError> {
        if self.items.is_none() && self.may_follow {
            self.follow().await;
        }
        if self.is_behind {
            self.catch_up().await
        } else {
            self.wait().await
        }
    }

    async fn follow(&mut self) {
        match self.stream.follow(&self.broadcast.log().id).await {
            Ok(following) => {
                self.followed_at = Instant::now();
                self.items = Some(following.items);
                self.snapshot = following.open;
                self.broadcast.doubt_texts();
                // Items announced before the subscription are in the store only.
                self.is_behind = true;
            }
            Err(error) => {
                // Readers get every event also without the stream. The tail tries the stream again later.
                tracing::debug!(%error, "readers receive no live texts now");
                self.follow_later(match error {
                    // The stream itself signals its return.
                    StreamError::Away(_) => MIN_FOLLOWED,
                    StreamError::Failed(_) => self.pace,
                });
            }
        }
    }

    /// Reads one page. After the last page, shows the texts that were open at the start of following.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        // An event from before the tail's start may have replaced a text. The event's announcement may have been lost,
        // and the stream then still has the text as open.
        if self.is_past_unknown && !self.snapshot.is_empty() {
            let note = |past: &[Event]| self.broadcast.note_past(past);
            if self.log.read_past(note).await?.is_none() {
                return Ok(());
            }
            self.is_past_unknown = false;
        }
        let known_last = self.log.sequence();
        let page = match self.log.next_page(known_last).await? {
            None => return Ok(()),
            Some(Read::Page(page)) => page,
            Some(Read::Lost { .. }) => return Err(another_log()),
        };
        self.broadcast.note_generations(&page.generations);
        self.show(page.events);
        if !page.has_more {
            self.is_behind = false;
            self.broadcast
                .start_texts(std::mem::take(&mut self.snapshot));
        }
        Ok(())
    }

    /// Shows events to the readers, and reports the shown events to `deliveries`.
    fn show(&self, events: Vec<Event>) {
        let Some(deliveries) = self.deliveries.as_ref().filter(|_| !events.is_empty()) else {
            return self.broadcast.show_events(events);
        };
        let shown = events.iter().map(DeliveredEvent::of).collect();
        self.broadcast.show_events(events);
        deliveries.delivered(
            self.broadcast.conversation_id(),
            shown,
            self.broadcast.subscribers(),
        );
    }

    /// Waits for an item of the stream, for unannounced events, or for the next try to follow the stream.
    async fn wait(&mut self) -> Result<(), StoreError> {
        self.log.doubt();
        let item = tokio::select! {
            item = receive(self.items.as_mut()) => item,
            news = self.watched.news(self.log.sequence()) => match news {
                // The cursor is unchecked here, so the next read includes the event at the cursor.
                News::Behind | News::Returned => {
                    self.is_behind = true;
                    return Ok(());
                }
                News::Doubtful => return self.check_presence().await,
            },
            () = until_followable(&*self.stream, self.follow_at), if self.items.is_none() => {
                self.may_follow = true;
                return Ok(());
            }
        };
        match item {
            // The event that replaces the text may be before the first cursor. Therefore the tail shows the text only
            // after a search of earlier events, like a text of the snapshot. Before the first event, the newest
            // generations are unknown.
            Some(Item::Start(text)) if self.is_past_unknown || self.log.sequence() == 0 => {
                self.snapshot.push(text);
                self.is_behind = true;
            }
            Some(Item::Start(text)) => self.broadcast.start_texts([text]),
            Some(Item::Delta(piece)) => {
                if let Err(MissingPiece) = self.broadcast.append(piece) {
                    self.follow_anew_later();
                }
            }
            Some(Item::Notice(notice)) => self.broadcast.show_notice(notice),
            Some(Item::Announced(news)) => {
                self.is_behind |= news.last_sequence > self.log.sequence();
            }
            // The stream has cut off a slow tail. The tail follows again, from its cursor.
            None => {
                self.items = None;
                if self.followed_at.elapsed() < MIN_FOLLOWED {
                    self.follow_later(self.pace);
                }
            }
        }
        Ok(())
    }

    /// Asks the store for the tail's conversation alone, after a query found fewer events than the tail has read.
    async fn check_presence(&self) -> Result<(), StoreError> {
        match self.log.conversation_head().await {
            Ok(None) => Err(StoreError::not_found(
                Missing::Conversation,
                self.broadcast.conversation_id(),
            )),
            // A replica is late, or the database has lost its last commits. Returning readers learn from the log which
            // case applies.
            Ok(Some(status)) if status.last_sequence < self.log.sequence() => Err(another_log()),
            Ok(Some(_)) => Ok(()),
            // The next query of the watcher may bring certainty.
            Err(error) => {
                tracing::debug!(%error, "cannot check whether a conversation still exists");
                Ok(())
            }
        }
    }

    /// Follows the stream anew after a contradiction between the stream and the shown text. The tail pauses before the
    /// new try, because a stream with repeated contradictions must not make a busy loop.
    fn follow_anew_later(&mut self) {
        tracing::warn!(
            conversation_id = self.broadcast.conversation_id(),
            "the stream skipped a part of a text; the gateway follows the stream anew"
        );
        self.items = None;
        self.follow_later(self.pace);
    }

    fn follow_later(&mut self, pause: Duration) {
        self.may_follow = false;
        self.follow_at = Instant::now() + pause;
    }
}

/// Makes the error for a database that has lost commits. Readers come back with their cursors and receive a reset
/// frame.
fn another_log() -> StoreError {
    StoreError::Conflict("the event log has lost events that readers have seen".to_owned())
}

/// Waits until the stream may be followed again: at `earliest` or later, and only while the stream is present.
async fn until_followable(stream: &dyn StreamReader, earliest: Instant) {
    sleep_until(earliest).await;
    stream.may_follow().await;
}

async fn receive(items: Option<&mut mpsc::Receiver<Item>>) -> Option<Item> {
    match items {
        Some(items) => items.recv().await,
        None => std::future::pending().await,
    }
}
