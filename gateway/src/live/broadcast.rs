//! The frames that the tail of a conversation has shown so far, and the readers who get those that follow.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_proto::event::Event;
use everturn_store::{Conversation, EventLog};
use everturn_stream::{OpenText, Piece};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{
    end::ReaderEnd,
    frame::LiveFrame,
    open_texts::{MissingPiece, OpenTexts},
    queue::ReaderQueue,
    sse::RenderedFrame,
};
use crate::limits::memory::Account;

/// A conversation as its tail shows it to all readers.
#[derive(Debug)]
pub(super) struct Broadcast {
    log: EventLog,
    /// The conversation's, which readers call its id.
    name: String,
    /// The tenant's.
    account: Arc<Account>,
    reader_buffer: usize,
    state: Mutex<BroadcastState>,
    /// Notified when the tail must check what its readers want.
    ask: Notify,
}

#[derive(Debug)]
struct BroadcastState {
    /// The last event that was shown.
    sequence: u32,
    texts: OpenTexts,
    subscriptions: BTreeMap<u64, Subscription>,
    next_id: u64,
    /// Readers that have subscribed, or still replay.
    readers: usize,
    /// Since when there are no readers.
    idle_since: Instant,
    end: Option<ReaderEnd>,
}

#[derive(Debug)]
struct Subscription {
    queue: Arc<ReaderQueue>,
    /// The reader has events up to this one, which the tail has yet to read. Until then it gets nothing, because a text
    /// may be one that those events have replaced.
    ahead: Option<u32>,
}

/// The result of a try to subscribe.
#[derive(Debug)]
pub(super) enum Subscribed {
    /// The reader has not subscribed: it must read the store first. It has been shown up to this event here.
    Behind { last_sequence: u32 },
    /// The reader has subscribed: it gets every frame from now on, and has missed none.
    Yes {
        /// The id of the subscription, for [`Broadcast::leave`].
        id: u64,
        /// The queue from which the reader takes its frames.
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

    /// What readers call the id of the conversation.
    pub(super) fn conversation_name(&self) -> &str {
        &self.name
    }

    /// The account of the conversation's tenant.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// True after the end, of which every reader was told.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BroadcastState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The methods for readers.
impl Broadcast {
    /// Counts a reader in, until it leaves.
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

    /// Subscribes a reader that has every event up to `cursor`, if it has all that were shown. It begins with the texts
    /// that are open at exactly this point. If there are any, the reader must have read the store since it came, so that
    /// it is shown no older generation than it may have seen at another gateway ([`Broadcast::note_generations`]).
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
    /// Notes the generations that a page of events came with. From now on, no text of an older one is shown.
    pub(super) fn note_generations(&self, newest: &BTreeMap<String, u32>) {
        if !newest.is_empty() {
            self.lock().texts.note_generations(newest);
        }
    }
}

/// The methods for the tail.
impl Broadcast {
    /// Shows events, which must be the ones that follow those already shown.
    pub(super) fn show_events(&self, events: Vec<Event>) {
        let mut state = self.lock();
        for event in events {
            state.sequence = event.sequence_number;
            state.texts.note(&event);
            self.hand_out(&mut state, LiveFrame::Event(event));
        }
    }

    /// The number of readers who get what is shown now.
    pub(super) fn subscribers(&self) -> usize {
        self.lock().subscriptions.len()
    }

    /// Notes events that readers had before the tail began: a text that they have replaced is not open.
    pub(super) fn note_past(&self, events: &[Event]) {
        let mut state = self.lock();
        for event in events {
            state.texts.note(event);
        }
    }

    /// Shows texts as the stream has them now.
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

    /// Notes that the stream is followed anew, so that pieces may have been missed.
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

    /// Waits until a reader wants something, or the last one has left. Cancel safe.
    pub(super) async fn asked(&self) {
        self.ask.notified().await;
    }

    /// True while a reader has events that the tail has not.
    pub(super) fn is_behind_a_reader(&self) -> bool {
        let state = self.lock();
        let mut subscriptions = state.subscriptions.values();
        subscriptions.any(|subscription| subscription.ahead.is_some())
    }

    /// Waits until nobody has read for `linger`; for ever while somebody does. Cancel safe.
    pub(super) async fn lingered(&self, linger: Duration) {
        let until = self.lock().idle_until(linger);
        match until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// True after the end, and when nobody has read for `linger`.
    pub(super) fn is_over(&self, linger: Duration) -> bool {
        let state = self.lock();
        let idle_until = state.idle_until(linger);
        state.end.is_some() || idle_until.is_some_and(|until| until <= Instant::now())
    }

    /// Gives a frame, rendered once, to every subscribed reader. The caller has noted it in the open texts already.
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
                // The reader has this event already. From here on it gets the same frames as the others.
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
