//! The frames shown by a conversation's tail, and the readers subscribed to later frames.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

use everturn_proto::event::Event;
use everturn_store::{Conversation, EventLog};
use everturn_stream::{Notice, OpenText, Piece};
use tokio::sync::Notify;

use super::{
    end::ReaderEnd,
    frame::LiveFrame,
    open_texts::{MissingPiece, OpenTexts},
    queue::ReaderQueue,
    sse::RenderedFrame,
};
use crate::{
    limits::memory::Account,
    sync::{Instant, Mutex, MutexGuard, sleep_until},
};

/// The live state of a conversation: the tail writes the state, and readers subscribe to frames.
#[derive(Debug)]
pub(super) struct Broadcast {
    log: EventLog,
    /// The conversation's name, which is the conversation id for readers.
    name: String,
    /// The tenant's memory account.
    account: Arc<Account>,
    reader_buffer: usize,
    state: Mutex<BroadcastState>,
    /// Notified when the tail must check its readers' needs.
    ask: Notify,
}

#[derive(Debug)]
struct BroadcastState {
    /// The sequence number of the last shown event.
    sequence: u32,
    texts: OpenTexts,
    subscriptions: BTreeMap<u64, Subscription>,
    next_id: u64,
    /// The number of subscribed and replaying readers.
    readers: usize,
    /// The time when the last reader left.
    idle_since: Instant,
    end: Option<ReaderEnd>,
}

#[derive(Debug)]
struct Subscription {
    queue: Arc<ReaderQueue>,
    /// The reader's last event, if the tail has yet to read up to the event. The reader gets no frame before, because
    /// the event may have replaced an open text.
    ahead: Option<u32>,
}

/// The result of a try to subscribe.
#[derive(Debug)]
pub(super) enum Subscribed {
    /// The reader has not subscribed and must read the store first. The tail has shown events up to `last_sequence`.
    Behind { last_sequence: u32 },
    /// The reader has subscribed: the reader gets every frame from now on, and has missed no frame.
    Yes {
        /// The id of the subscription, for [`Broadcast::leave`].
        id: u64,
        /// The queue of the reader's frames.
        queue: Arc<ReaderQueue>,
    },
    /// The tail has ended.
    Over(ReaderEnd),
}

impl Broadcast {
    /// Makes a broadcast that begins after the conversation's last event.
    pub(super) fn new(
        conversation: &Conversation,
        account: Arc<Account>,
        reader_buffer: usize,
    ) -> Self {
        let state = BroadcastState {
            sequence: conversation.last_sequence,
            texts: OpenTexts::default(),
            subscriptions: BTreeMap::new(),
            next_id: 0,
            readers: 0,
            idle_since: Instant::now(),
            end: None,
        };
        Self {
            log: conversation.log(),
            name: conversation.name().to_owned(),
            account,
            reader_buffer,
            state: Mutex::new(state),
            ask: Notify::new(),
        }
    }

    pub(super) fn log(&self) -> &EventLog {
        &self.log
    }

    pub(super) fn conversation_id(&self) -> &str {
        &self.log.conversation_id
    }

    /// Returns the conversation's name, which is the conversation id for readers.
    pub(super) fn conversation_name(&self) -> &str {
        &self.name
    }

    /// Returns the account of the conversation's tenant.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Returns true after the end of the broadcast. Every reader knows of the end by then.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BroadcastState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The methods for readers.
impl Broadcast {
    /// Counts a reader in, until [`Broadcast::leave`].
    pub(super) fn enter(&self) {
        self.lock().readers += 1;
    }

    /// Counts a reader out, and ends its subscription.
    pub(super) fn leave(&self, subscription: Option<u64>) {
        let mut state = self.lock();
        if let Some(id) = subscription {
            state.subscriptions.remove(&id);
        }
        state.readers -= 1;
        if state.readers == 0 {
            state.idle_since = Instant::now();
            self.ask.notify_one();
        }
    }

    /// Subscribes a reader with the events up to `cursor`, if the tail has shown no later event. The reader begins with
    /// the texts open at `cursor`. With open texts, the reader must have read the store since its start. Without the
    /// read, the gateway might show an older generation than another gateway has shown
    /// ([`Broadcast::note_generations`]).
    pub(super) fn subscribe(&self, cursor: u32, has_read: bool) -> Subscribed {
        let mut state = self.lock();
        if let Some(end) = state.end {
            return Subscribed::Over(end);
        }
        let last_sequence = state.sequence;
        if cursor < last_sequence || (!has_read && !state.texts.is_empty()) {
            return Subscribed::Behind { last_sequence };
        }
        let queue = Arc::new(ReaderQueue::new(self.reader_buffer));
        let ahead = (cursor > last_sequence).then_some(cursor);
        if ahead.is_some() {
            self.ask.notify_one();
        } else {
            queue.begin(state.texts.frames(self.conversation_name(), &self.account));
        }
        let id = state.next_id;
        state.next_id += 1;
        let subscription = Subscription {
            queue: Arc::clone(&queue),
            ahead,
        };
        state.subscriptions.insert(id, subscription);
        Subscribed::Yes { id, queue }
    }
}

/// The methods for readers and for the tail.
impl Broadcast {
    /// Notes the generations of an event page. From now on, the broadcast shows no text of an older generation.
    pub(super) fn note_generations(&self, newest: &BTreeMap<String, u32>) {
        if !newest.is_empty() {
            self.lock().texts.note_generations(newest);
        }
    }
}

/// The methods for the tail.
impl Broadcast {
    /// Shows events. The events must follow the last shown event.
    pub(super) fn show_events(&self, events: Vec<Event>) {
        let mut state = self.lock();
        for event in events {
            state.sequence = event.sequence_number;
            state.texts.note(&event);
            self.hand_out(&mut state, LiveFrame::Event(event));
        }
    }

    /// Returns the number of subscribed readers.
    pub(super) fn subscribers(&self) -> usize {
        self.lock().subscriptions.len()
    }

    /// Notes events from before the tail's start. A text replaced by an earlier event is not open.
    pub(super) fn note_past(&self, events: &[Event]) {
        let mut state = self.lock();
        for event in events {
            state.texts.note(event);
        }
    }

    /// Shows texts in their current state in the stream.
    pub(super) fn start_texts(&self, texts: impl IntoIterator<Item = OpenText>) {
        let mut state = self.lock();
        for text in texts {
            for frame in state.texts.start(text) {
                self.hand_out(&mut state, frame);
            }
        }
    }

    /// Shows the next piece of a text.
    pub(super) fn append(&self, piece: Piece) -> Result<(), MissingPiece> {
        let mut state = self.lock();
        for frame in state.texts.append(piece)? {
            self.hand_out(&mut state, frame);
        }
        Ok(())
    }

    /// Shows a notice.
    pub(super) fn show_notice(&self, notice: Notice) {
        let mut state = self.lock();
        self.hand_out(&mut state, LiveFrame::Notice(notice));
    }

    /// Notes a new subscription to the stream, because the tail may have missed pieces before.
    pub(super) fn doubt_texts(&self) {
        self.lock().texts.doubt();
    }

    /// Ends the broadcast for all readers. Only the first end counts.
    pub(super) fn end(&self, end: ReaderEnd) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        for subscription in std::mem::take(&mut state.subscriptions).into_values() {
            subscription.queue.end(end);
        }
        self.ask.notify_one();
    }

    /// Waits until a reader needs the tail, or the last reader has left. Cancel safe.
    pub(super) async fn asked(&self) {
        self.ask.notified().await;
    }

    /// Returns true while a reader has events that the tail has not read.
    pub(super) fn is_behind_a_reader(&self) -> bool {
        let state = self.lock();
        let mut subscriptions = state.subscriptions.values();
        subscriptions.any(|subscription| subscription.ahead.is_some())
    }

    /// Waits until the broadcast has had no reader for `linger`; waits forever while a reader is present. Cancel safe.
    pub(super) async fn lingered(&self, linger: Duration) {
        let until = self.lock().idle_until(linger);
        match until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// Returns true after the end, or after `linger` without a reader.
    pub(super) fn is_over(&self, linger: Duration) -> bool {
        let state = self.lock();
        let idle_until = state.idle_until(linger);
        state.end.is_some() || idle_until.is_some_and(|until| until <= Instant::now())
    }

    /// Gives a frame, rendered once, to every subscribed reader. The caller has already noted the frame in the open
    /// texts.
    fn hand_out(&self, state: &mut BroadcastState, frame: LiveFrame) {
        let rendered = RenderedFrame::new(self.conversation_name(), frame, &self.account);
        let (rendered, is_over) = (Arc::new(rendered), self.account.is_over());
        let (sequence, texts) = (state.sequence, &mut state.texts);
        state.subscriptions.retain(|_, subscription| {
            match subscription.ahead {
                None => return subscription.queue.push(Arc::clone(&rendered), is_over),
                Some(cursor) if sequence >= cursor && is_over => {
                    subscription.queue.set_back();
                    return false;
                }
                // The reader already has the event. From now on, the reader gets the tail's frames.
                Some(cursor) if sequence >= cursor => {
                    subscription.ahead = None;
                    subscription
                        .queue
                        .begin(texts.frames(self.conversation_name(), &self.account));
                }
                Some(_) => {}
            }
            true
        });
    }
}

impl BroadcastState {
    fn idle_until(&self, linger: Duration) -> Option<Instant> {
        (self.readers == 0).then(|| self.idle_since + linger)
    }
}
