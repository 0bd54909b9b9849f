//! The messages that wait in a run: for their own turn, or to join the running one.
//!
//! Pure data. The store is the truth about messages; the inbox only says in which order they are taken.

use std::collections::VecDeque;

use everturn_proto::{limits::MAX_QUEUED_MESSAGES, turn::Submit, words::on_busy};

/// Those that may wait, and the one whose turn is about to begin.
const CAPACITY: usize = MAX_QUEUED_MESSAGES + 1;

/// Messages in the order they will be taken.
#[derive(Debug, Default, Clone)]
pub(crate) struct Inbox {
    waiting: VecDeque<Submit>,
}

impl Inbox {
    /// Adds a message unless it waits already or the inbox is full (invariant 10). An interrupting message goes
    /// to the front: it is what the user wants answered now. True when it was added.
    pub(crate) fn push(&mut self, message: Submit) -> bool {
        if self.waiting.len() >= CAPACITY || self.contains(&message.message_id) {
            return false;
        }
        if message.on_busy == on_busy::INTERRUPT {
            self.waiting.push_front(message);
        } else {
            self.waiting.push_back(message);
        }
        true
    }

    /// The next message that starts a turn.
    pub(crate) fn take_next(&mut self) -> Option<Submit> {
        self.waiting.pop_front()
    }

    /// Notes why a message that waits shall not be answered: its turn will end as it begins. The first reason stays.
    pub(crate) fn cancel(&mut self, message_id: &str, reason: &str) {
        let waiting = self
            .waiting
            .iter_mut()
            .find(|message| message.message_id == message_id);
        if let Some(message) = waiting.filter(|message| message.cancel_reason.is_empty()) {
            reason.clone_into(&mut message.cancel_reason);
        }
    }

    /// The messages that want to join the running turn, in order. Not one that was cancelled: its end is a turn's.
    pub(crate) fn take_steers(&mut self) -> Vec<Submit> {
        let (steers, rest) = self.waiting.drain(..).partition(|message| {
            message.on_busy == on_busy::STEER && message.cancel_reason.is_empty()
        });
        self.waiting = rest;
        Vec::from_iter::<VecDeque<Submit>>(steers)
    }

    pub(crate) fn contains(&self, message_id: &str) -> bool {
        self.waiting
            .iter()
            .any(|message| message.message_id == message_id)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Everything that waits, for the next run.
    pub(crate) fn drain(&mut self) -> Vec<Submit> {
        self.waiting.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, on_busy: &str) -> Submit {
        Submit {
            message_id: id.into(),
            on_busy: on_busy.into(),
            ..Submit::default()
        }
    }

    fn ids(messages: &[Submit]) -> Vec<&str> {
        messages
            .iter()
            .map(|message| message.message_id.as_str())
            .collect()
    }

    #[test]
    fn takes_in_order_and_interrupts_first() {
        let mut inbox = Inbox::default();
        for (id, on_busy) in [("a", ""), ("b", on_busy::QUEUE), ("c", on_busy::INTERRUPT)] {
            assert!(inbox.push(message(id, on_busy)));
        }
        assert_eq!(ids(&inbox.drain()), ["c", "a", "b"]);
    }

    #[test]
    fn steers_leave_the_queue_in_order() {
        let mut inbox = Inbox::default();
        for (id, on_busy) in [
            ("a", ""),
            ("s1", on_busy::STEER),
            ("b", ""),
            ("s2", on_busy::STEER),
        ] {
            inbox.push(message(id, on_busy));
        }
        assert_eq!(ids(&inbox.take_steers()), ["s1", "s2"]);
        assert_eq!(ids(&inbox.drain()), ["a", "b"]);
    }

    #[test]
    fn refuses_doubles_and_overflow() {
        let mut inbox = Inbox::default();
        assert!(inbox.push(message("a", "")));
        assert!(!inbox.push(message("a", "")));
        for n in 1..CAPACITY {
            assert!(inbox.push(message(&n.to_string(), "")));
        }
        assert!(!inbox.push(message("one too many", "")));
        assert_eq!(inbox.len(), CAPACITY);
    }

    #[test]
    fn a_cancelled_steer_has_a_turn_of_its_own() {
        let mut inbox = Inbox::default();
        for id in ["s1", "s2"] {
            inbox.push(message(id, on_busy::STEER));
        }
        for (id, reason) in [("s1", "first"), ("s1", "second"), ("unknown", "none")] {
            inbox.cancel(id, reason);
        }
        assert_eq!(ids(&inbox.take_steers()), ["s2"]);
        let rest = inbox.drain();
        assert_eq!(
            (rest[0].message_id.as_str(), rest[0].cancel_reason.as_str()),
            ("s1", "first")
        );
    }
}
