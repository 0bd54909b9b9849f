//! The seam between replay and live: every event after a cursor, once and in order, and the texts being written
//! now (invariant 8). One path for newcomers, returners and retried steps.
//!
//! The order that makes it hold: follow the stream first, read the store until caught up, then show the open
//! texts that no event sent so far has sealed, then go live. Live, an announcement only makes the tail read the
//! store; events never come from the stream. One tail serves all readers of a conversation: see [`hub`](super::hub).
//!
//! Must not be here: HTTP, SSE.

mod seals;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use everturn_proto::event::Event;
use everturn_store::{Access, EventReader, StoreError};
use everturn_stream::{Item, OpenText, Piece, StreamReader, TextKey};
use tokio::{
    sync::mpsc,
    time::{Instant, Interval},
};

pub(crate) use self::seals::Seals;
use crate::live::watcher::{News, Watched, Watcher};

/// Events read at a time: bounds what a tail or a reader holds.
pub(crate) const PAGE: u32 = 200;

/// Reads that may fail in a row, one each time the watcher looks, before the reader is sent away to come back later.
pub(crate) const MAX_FAILURES: u32 = 30;

/// Open texts a tail keeps track of; the stream has fewer. A text past it is shown anew when it goes on.
pub(crate) const MAX_SHOWN: usize = 256;

/// Bytes of a text that the reader has from before the tail followed anew.
const UNKNOWN: usize = usize::MAX;

/// Shortest time between two followings: a stream that cuts its followers at once must not make a busy loop.
const MIN_FOLLOWED: Duration = Duration::from_millis(50);

/// What a reader receives.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// A persisted event.
    Event(Event),
    /// A text as it is now; replaces what the reader had for its key.
    TextStart(OpenText),
    /// More of a text.
    TextDelta(Piece),
    /// The model has finished a text. Its event follows.
    TextEnd {
        /// The message whose turn it is.
        message_id: String,
        /// Which text.
        key: TextKey,
        /// Which try of the step.
        generation: u32,
    },
}

impl Frame {
    /// The message whose turn it belongs to.
    pub fn message_id(&self) -> &str {
        match self {
            Self::Event(event) => &event.message_id,
            Self::TextStart(text) => &text.message_id,
            Self::TextDelta(piece) => &piece.message_id,
            Self::TextEnd { message_id, .. } => message_id,
        }
    }
}

/// What the reader has of an open text.
#[derive(Debug)]
struct Shown {
    key: TextKey,
    generation: u32,
    bytes: usize,
}

/// A place in one conversation. Dropping it touches nothing else.
pub struct Tail {
    events: Arc<dyn EventReader>,
    stream: Arc<dyn StreamReader>,
    access: Access,
    conversation_id: String,
    /// The last event handed out or waiting in `ready`.
    cursor: u32,
    ready: VecDeque<Frame>,
    items: Option<mpsc::Receiver<Item>>,
    /// Open texts at the moment of following, to be shown once caught up.
    snapshot: Vec<OpenText>,
    /// False after trouble with the stream, until it is time to try again.
    may_follow: bool,
    followed_at: Instant,
    is_behind: bool,
    /// The events before the first cursor have not been searched for seals.
    is_past_unknown: bool,
    seals: Seals,
    shown: Vec<Shown>,
    /// Says when events came that nobody announced.
    watched: Watched,
    /// When to try again what failed.
    retry: Interval,
    failures: u32,
}

impl Tail {
    /// From behind the event `cursor`. Must be called within a tokio runtime.
    pub fn new(
        events: Arc<dyn EventReader>,
        stream: Arc<dyn StreamReader>,
        access: Access,
        conversation_id: impl Into<String>,
        cursor: u32,
        watcher: &Watcher,
    ) -> Self {
        let conversation_id = conversation_id.into();
        Self {
            events,
            stream,
            watched: watcher.watch(&conversation_id),
            retry: watcher.pace(),
            access,
            conversation_id,
            cursor,
            ready: VecDeque::new(),
            items: None,
            snapshot: Vec::new(),
            may_follow: true,
            followed_at: Instant::now(),
            is_behind: true,
            is_past_unknown: cursor > 0,
            seals: Seals::default(),
            shown: Vec::new(),
            failures: 0,
        }
    }

    /// Reads the store with the next [`Tail::next`]: somebody knows of events that have not been announced here.
    pub fn look(&mut self) {
        self.is_behind = true;
    }

    /// The next frame; waits until there is one. The error [`StoreError::NotFound`] means that the conversation is
    /// gone, any other that its readers should come back later. Cancel safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Frame, StoreError> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(frame);
            }
            if self.items.is_none() && self.may_follow {
                self.follow().await;
            }
            if !self.is_behind {
                self.wait().await?;
            } else if let Err(error) = self.catch_up().await {
                self.failures += 1;
                if !error.is_retryable() || self.failures >= MAX_FAILURES {
                    return Err(error);
                }
                tracing::debug!(%error, failures = self.failures, "a reader waits for the store");
                self.retry.tick().await;
            } else {
                self.failures = 0;
            }
        }
    }

    /// A frame that is there already.
    pub fn next_ready(&mut self) -> Option<Frame> {
        self.ready.pop_front()
    }

    async fn follow(&mut self) {
        match self.stream.follow(&self.conversation_id).await {
            Ok(following) => {
                self.followed_at = Instant::now();
                self.items = Some(following.items);
                self.snapshot = following.open;
                // The generations stay: the stream may have lost them, and the reader must not go back.
                self.shown
                    .iter_mut()
                    .for_each(|shown| shown.bytes = UNKNOWN);
                // What was announced before this moment is in the store, and nowhere else.
                self.is_behind = true;
            }
            Err(error) => {
                // The reader has every event all the same, and the stream is tried again.
                tracing::debug!(%error, "a reader goes without live texts");
                self.may_follow = false;
            }
        }
    }

    /// Reads one page. After the last one, shows the texts that were open when following began.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        if self.is_past_unknown && !self.snapshot.is_empty() {
            self.search_past().await?;
        }
        let page = self
            .events
            .events(
                &self.access,
                &self.conversation_id,
                self.cursor.saturating_add(1),
                PAGE,
            )
            .await?;
        for event in page.events {
            self.cursor = event.sequence_number;
            self.note(&event);
            self.ready.push_back(Frame::Event(event));
        }
        if !page.has_more {
            self.is_behind = false;
            for text in std::mem::take(&mut self.snapshot) {
                self.start(text);
            }
        }
        Ok(())
    }

    /// Finds the texts that were sealed by events the reader had before it came: their announcement may have
    /// been lost, and then the stream still holds them open.
    async fn search_past(&mut self) -> Result<(), StoreError> {
        let from = self.cursor.saturating_sub(PAGE).saturating_add(1);
        let page = self
            .events
            .events(&self.access, &self.conversation_id, from, PAGE)
            .await?;
        let cursor = self.cursor;
        page.events
            .iter()
            .filter(|event| event.sequence_number <= cursor)
            .for_each(|event| self.note(event));
        self.is_past_unknown = false;
        Ok(())
    }

    fn note(&mut self, event: &Event) {
        self.seals.note(event);
        self.shown.retain(|shown| !self.seals.cover(&shown.key));
    }

    /// Waits for news.
    async fn wait(&mut self) -> Result<(), StoreError> {
        let item = tokio::select! {
            item = receive(self.items.as_mut()) => item,
            news = self.watched.news(self.cursor) => match news {
                News::Behind => {
                    self.is_behind = true;
                    return Ok(());
                }
                News::Doubtful => return self.check_presence().await,
            },
            _ = self.retry.tick(), if self.items.is_none() => {
                self.may_follow = true;
                return Ok(());
            }
        };
        match item {
            // Its event may be one of those before the first cursor; shown as the snapshot is, after a search there.
            Some(Item::Start(text)) if self.is_past_unknown => {
                self.snapshot.push(text);
                self.is_behind = true;
            }
            Some(Item::Start(text)) => self.start(text),
            Some(Item::Delta(piece)) => self.continue_text(piece),
            Some(Item::Announced(news)) => self.is_behind |= news.last_sequence > self.cursor,
            // Cut for being slow: begin again from the cursor.
            None => {
                self.items = None;
                self.may_follow = self.followed_at.elapsed() >= MIN_FOLLOWED;
            }
        }
        Ok(())
    }

    /// Asks for the conversation by itself after a look that found less of it than was read.
    async fn check_presence(&self) -> Result<(), StoreError> {
        match self
            .events
            .conversation_status(&self.access, &self.conversation_id)
            .await
        {
            Ok(None) => Err(StoreError::not_found("conversation", &self.conversation_id)),
            // Removed and created anew, or a replica that is late: readers who come back are told which.
            Ok(Some(status)) if status.last_sequence < self.cursor => Err(StoreError::Conflict(
                "the event log is shorter than what was read of it".to_owned(),
            )),
            Ok(Some(_)) => Ok(()),
            // The next look says more.
            Err(error) => {
                tracing::debug!(%error, "cannot tell whether a conversation is still there");
                Ok(())
            }
        }
    }

    fn start(&mut self, text: OpenText) {
        if self.seals.cover(&text.key) {
            return;
        }
        if let Some(shown) = self.shown.iter_mut().find(|shown| shown.key == text.key) {
            if text.generation < shown.generation {
                return;
            }
            (shown.generation, shown.bytes) = (text.generation, text.text.len());
        } else {
            if self.shown.len() >= MAX_SHOWN {
                self.shown.remove(0);
            }
            let (key, bytes) = (text.key.clone(), text.text.len());
            self.shown.push(Shown {
                key,
                generation: text.generation,
                bytes,
            });
        }
        let end = text
            .is_ended
            .then(|| text_end(&text.message_id, &text.key, text.generation));
        self.ready.push_back(Frame::TextStart(text));
        self.ready.extend(end);
    }

    fn continue_text(&mut self, piece: Piece) {
        if self.seals.cover(&piece.key) {
            return;
        }
        let Some(shown) = self.shown.iter_mut().find(|shown| shown.key == piece.key) else {
            return self.lose_place();
        };
        if piece.generation < shown.generation {
            return;
        }
        if (piece.generation, piece.offset) != (shown.generation, shown.bytes) {
            return self.lose_place();
        }
        shown.bytes += piece.text.len();
        let end = piece
            .is_end
            .then(|| text_end(&piece.message_id, &piece.key, piece.generation));
        if !piece.text.is_empty() {
            self.ready.push_back(Frame::TextDelta(piece));
        }
        self.ready.extend(end);
    }

    /// The stream contradicts what the reader has. Follows anew in a while, not at once: a stream that
    /// goes on contradicting must not make this a busy loop.
    fn lose_place(&mut self) {
        tracing::warn!(
            conversation_id = self.conversation_id,
            "the stream skipped a piece of a text"
        );
        self.items = None;
        self.may_follow = false;
    }
}

pub(crate) fn text_end(message_id: &str, key: &TextKey, generation: u32) -> Frame {
    Frame::TextEnd {
        message_id: message_id.to_owned(),
        key: key.clone(),
        generation,
    }
}

async fn receive(items: Option<&mut mpsc::Receiver<Item>>) -> Option<Item> {
    match items {
        Some(items) => items.recv().await,
        None => std::future::pending().await,
    }
}
