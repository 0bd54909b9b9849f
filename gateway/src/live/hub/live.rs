//! What a tail has handed out so far, and who sits there to get the rest.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use everturn_store::Conversation;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{end::End, queue::Queue, screen::Screen};
use crate::live::{sse::Rendered, tail::Frame};

/// One conversation's tail as its readers see it.
#[derive(Debug)]
pub(super) struct Live {
    conversation_id: String,
    tenant_id: String,
    /// Tells the conversation from another one of the same id, after this one was removed.
    created_at: DateTime<Utc>,
    reader_buffer: usize,
    state: Mutex<State>,
    /// The tail is to look at what its readers want.
    ask: Notify,
}

#[derive(Debug)]
struct State {
    /// The last event handed out.
    sequence: u32,
    screen: Screen,
    seats: BTreeMap<u64, Seat>,
    next_seat: u64,
    /// Seated, or still on their way.
    readers: usize,
    /// Since when there are none.
    idle_since: Instant,
    end: Option<End>,
}

#[derive(Debug)]
struct Seat {
    queue: Arc<Queue>,
    /// Not begun: the reader has events up to this one, which the tail has yet to read. Until then it gets nothing,
    /// because a text may be one that those events have replaced.
    ahead: Option<u32>,
}

/// Where a reader stands to the tail.
#[derive(Debug)]
pub(super) enum Join {
    /// The reader lacks events that the tail has handed out.
    Behind,
    /// It sits, and has missed nothing.
    Seated {
        /// For [`Live::leave`].
        seat: u64,
        /// What it gets from now on.
        queue: Arc<Queue>,
    },
    /// The tail is over.
    Over(End),
}

impl Live {
    /// A tail that begins behind the conversation's last event.
    pub(super) fn new(conversation: &Conversation, reader_buffer: usize) -> Self {
        let state = State {
            sequence: conversation.last_sequence,
            screen: Screen::default(),
            seats: BTreeMap::new(),
            next_seat: 0,
            readers: 0,
            idle_since: Instant::now(),
            end: None,
        };
        Self {
            conversation_id: conversation.id.clone(),
            tenant_id: conversation.tenant_id.clone(),
            created_at: conversation.created_at,
            reader_buffer,
            state: Mutex::new(state),
            ask: Notify::new(),
        }
    }

    pub(super) fn conversation_id(&self) -> &str {
        &self.conversation_id
    }

    /// False for another conversation of the same id, and after the end.
    pub(super) fn is_of(&self, conversation: &Conversation) -> bool {
        let is_same =
            self.tenant_id == conversation.tenant_id && self.created_at == conversation.created_at;
        is_same && self.lock().end.is_none()
    }

    /// Counts a reader in, until it leaves.
    pub(super) fn enter(&self) {
        self.lock().readers += 1;
    }

    /// Counts a reader out.
    pub(super) fn leave(&self, seat: Option<u64>) {
        let mut state = self.lock();
        if let Some(seat) = seat {
            state.seats.remove(&seat);
        }
        state.readers -= 1;
        if state.readers == 0 {
            state.idle_since = Instant::now();
            self.ask.notify_one();
        }
    }

    /// A seat for a reader that has every event up to `cursor`, if it has all that were handed out.
    pub(super) fn join(&self, cursor: u32) -> Join {
        let mut state = self.lock();
        if let Some(end) = state.end {
            return Join::Over(end);
        }
        if cursor < state.sequence {
            return Join::Behind;
        }
        let queue = Arc::new(Queue::new(self.reader_buffer));
        let ahead = (cursor > state.sequence).then_some(cursor);
        if ahead.is_some() {
            self.ask.notify_one();
        } else {
            queue.begin(state.screen.frames(&self.conversation_id));
        }
        let seat = state.next_seat;
        state.next_seat += 1;
        state.seats.insert(
            seat,
            Seat {
                queue: Arc::clone(&queue),
                ahead,
            },
        );
        Join::Seated { seat, queue }
    }

    /// Gives frames to all who sit here.
    pub(super) fn hand_out(&self, frames: impl Iterator<Item = Frame>) {
        let mut state = self.lock();
        for frame in frames {
            state.hand_out(
                &Arc::new(Rendered::new(&self.conversation_id, frame)),
                &self.conversation_id,
            );
        }
    }

    /// Nothing comes any more. The first end stands.
    pub(super) fn end(&self, end: End) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        for seat in std::mem::take(&mut state.seats).into_values() {
            seat.queue.end(end);
        }
        self.ask.notify_one();
    }

    /// Waits for a reader that wants something, or for the last one to leave. Cancel safe.
    pub(super) async fn asked(&self) {
        self.ask.notified().await;
    }

    /// True while a reader has events that the tail has not.
    pub(super) fn is_behind_a_reader(&self) -> bool {
        self.lock().seats.values().any(|seat| seat.ahead.is_some())
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
        state.end.is_some()
            || state
                .idle_until(linger)
                .is_some_and(|until| until <= Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn idle_until(&self, linger: Duration) -> Option<Instant> {
        (self.readers == 0).then(|| self.idle_since + linger)
    }

    fn hand_out(&mut self, rendered: &Arc<Rendered>, conversation_id: &str) {
        if let Frame::Event(event) = &rendered.frame {
            self.sequence = event.sequence_number;
        }
        self.screen.take(&rendered.frame);
        let (sequence, screen) = (self.sequence, &mut self.screen);
        self.seats.retain(|_, seat| match seat.ahead {
            None => seat.queue.push(Arc::clone(rendered)),
            Some(cursor) => {
                // The event it has already: from here on it sees what the others see.
                if sequence >= cursor {
                    seat.ahead = None;
                    seat.queue.begin(screen.frames(conversation_id));
                }
                true
            }
        });
    }
}
