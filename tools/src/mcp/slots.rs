//! The slots for parallel calls of a connection.
//!
//! A conversation gets at most half of the slots, so that the calls of one conversation that hang never hold every call of
//! the others up.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// The slots of a connection.
pub(super) struct Slots {
    most: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    all: usize,
    /// The slots of each conversation with at least one slot.
    of_conversations: HashMap<String, usize>,
}

impl Slots {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: Mutex::default(),
            freed: Notify::new(),
        }
    }

    /// Waits for a slot for a call of the conversation.
    pub(super) async fn take(&self, conversation_id: &str) -> Slot<'_> {
        loop {
            let freed = self.freed.notified();
            if self.try_take(conversation_id) {
                return Slot {
                    slots: self,
                    conversation_id: conversation_id.to_owned(),
                };
            }
            freed.await;
        }
    }

    fn try_take(&self, conversation_id: &str) -> bool {
        let most_of_one = self.most.div_ceil(2);
        let mut taken = self.taken();
        let own = taken.of_conversations.get(conversation_id).copied();
        let own = own.unwrap_or_default();
        let has_room = taken.all < self.most && own < most_of_one;
        if has_room {
            taken.all += 1;
            let own = own + 1;
            taken
                .of_conversations
                .insert(conversation_id.to_owned(), own);
        }
        has_room
    }

    fn free(&self, conversation_id: &str) {
        let mut taken = self.taken();
        taken.all -= 1;
        if let Some(own) = taken.of_conversations.get_mut(conversation_id) {
            *own -= 1;
            if *own == 0 {
                taken.of_conversations.remove(conversation_id);
            }
        }
        drop(taken);
        self.freed.notify_waiters();
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot. Dropping the slot frees it.
pub(super) struct Slot<'a> {
    slots: &'a Slots,
    conversation_id: String,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.slots.free(&self.conversation_id);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn calls_of_one_conversation_never_take_every_slot() {
        let slots = Slots::new(3);
        let first = [slots.take("a").await, slots.take("a").await];
        assert!(
            slots.take("a").now_or_never().is_none(),
            "half of the slots"
        );
        let other = slots.take("b").await;
        let mut waits = Box::pin(slots.take("b"));
        assert!(waits.as_mut().now_or_never().is_none(), "all are taken");
        drop(first);
        drop(waits.await);
        drop(other);
        let taken = slots.taken();
        assert!(taken.all == 0 && taken.of_conversations.is_empty());
    }

    #[tokio::test]
    async fn a_single_slot_serves_one_call_after_the_other() {
        let slots = Slots::new(1);
        drop(slots.take("a").await);
        let held = slots.take("a").await;
        assert!(slots.take("b").now_or_never().is_none());
        drop(held);
        assert!(slots.take("b").now_or_never().is_some());
    }
}
