//! Joins the replay of events with the texts that are being written: every event after a cursor, once and in order, and
//! then the open texts (invariant 8, a cursor never expires). New readers, returning readers and retried steps all take
//! this one way.
//!
//! The order matters: the tail first follows the stream, then reads the store until it has every event, then shows the
//! open texts that none of these events has replaced, and then passes on deltas. An announcement only makes the tail
//! read the store; events never come from the stream.
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

/// The shortest time between two tries to follow. A stream that cuts its followers at once must not make a busy loop.
const MIN_FOLLOWED: Duration = Duration::from_millis(50);

/// Reads one conversation and shows it to its readers.
pub(super) struct Tail {
    stream: Arc<dyn StreamReader>,
    log: LogCursor,
    deliveries: Option<Arc<dyn Deliveries>>,
    broadcast: Arc<Broadcast>,
    items: Option<mpsc::Receiver<Item>>,
    /// Texts that are open, to be shown once every event is read.
    snapshot: Vec<OpenText>,
    /// False after an error of the stream, until it is time to try again.
    may_follow: bool,
    followed_at: Instant,
    /// The earliest time of the next try.
    follow_at: Instant,
    /// The time between two tries to follow a stream that is there and still cannot be followed.
    pace: Duration,
    is_behind: bool,
    /// True until the events before the first cursor have been searched for events that replace texts.
    is_past_unknown: bool,
    /// Tells when the store has events that were not announced.
    watched: WatchedConversation,
}

impl Tail {
    /// Makes a tail that begins where `log` stands. Must be called within a tokio runtime.
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

    /// Reads the store with the next [`Tail::step`]: somebody knows of events that have not been announced here.
    pub(super) fn look(&mut self) {
        self.is_behind = true;
    }

    /// Does what comes next: follows the stream, reads the store, or waits for news. The error [`StoreError::NotFound`]
    /// means that the conversation is gone, any other that its readers should come back later. Cancel safe: dropping
    /// the future loses nothing.
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
                // What was announced before this moment is in the store, and nowhere else.
                self.is_behind = true;
            }
            Err(error) => {
                // Readers get every event also without the stream, which is tried again later.
                tracing::debug!(%error, "readers go without live texts");
                self.follow_later(match error {
                    // The stream itself says when it is back.
                    StreamError::Away(_) => MIN_FOLLOWED,
                    StreamError::Failed(_) => self.pace,
                });
            }
        }
    }

    /// Reads one page. After the last one, shows the texts that were open when following began.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        // A text may have been replaced by an event that readers had before the tail began: its announcement may have
        // been lost, and then the stream still holds the text as open.
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

    /// Shows events to the readers, and says that it has.
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
                // In doubt, the next read is of the event at the cursor too.
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
            // The event that replaces this text may be before the first cursor. So the text is shown only after a
            // search there, like those of the snapshot. Before the first event, nothing is known of the generations.
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
            Some(Item::Announced(news)) => {
                self.is_behind |= news.last_sequence > self.log.sequence();
            }
            // The stream has cut off this tail because it was slow. The tail follows again, from its cursor.
            None => {
                self.items = None;
                if self.followed_at.elapsed() < MIN_FOLLOWED {
                    self.follow_later(self.pace);
                }
            }
        }
        Ok(())
    }

    /// Asks the store for this conversation alone, after a query that found fewer events of it than were read.
    async fn check_presence(&self) -> Result<(), StoreError> {
        match self.log.conversation_head().await {
            Ok(None) => Err(StoreError::not_found(
                Missing::Conversation,
                self.broadcast.conversation_id(),
            )),
            // A replica is late, or the database has lost its last commits. Readers that come back are told which.
            Ok(Some(status)) if status.last_sequence < self.log.sequence() => Err(another_log()),
            Ok(Some(_)) => Ok(()),
            // The next query of the watcher may bring certainty.
            Err(error) => {
                tracing::debug!(%error, "cannot tell whether a conversation is still there");
                Ok(())
            }
        }
    }

    /// Follows the stream anew after it contradicted what was shown. Waits a while before, because a stream that goes
    /// on contradicting must not make a busy loop.
    fn follow_anew_later(&mut self) {
        tracing::warn!(
            conversation_id = self.broadcast.conversation_id(),
            "the stream skipped a piece of a text"
        );
        self.items = None;
        self.follow_later(self.pace);
    }

    fn follow_later(&mut self, pause: Duration) {
        self.may_follow = false;
        self.follow_at = Instant::now() + pause;
    }
}

/// The database has lost commits. Every reader comes back with its cursor, and is told from where it begins anew.
fn another_log() -> StoreError {
    StoreError::Conflict("the event log is not the one that was read".to_owned())
}

/// Waits until the stream may be followed again: not before this time, and not while the stream is away.
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
