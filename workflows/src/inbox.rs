//! The waiting messages of a run: for their own turn, or to join the running turn.
//!
//! Pure data. The store has the list of messages; the inbox only has the order in which the run takes them.

use std::collections::VecDeque;

use everturn_proto::{limits::MAX_QUEUED_MESSAGES, turn::Submit, words::OnBusy};

/// The most messages in the inbox: the waiting messages, and the message of the turn about to begin.
const CAPACITY: usize = MAX_QUEUED_MESSAGES + 1;

/// The most early cancels that the inbox keeps.
const MAX_EARLY_CANCELS: usize = 64;

/// A run's accepted message. Every message has an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: String,
    /// The text; absent when the text is in the row of `messages`.
    pub(crate) content: Option<String>,
    pub(crate) on_busy: OnBusy,
    /// The reason of a cancel that arrived while the message waited.
    pub(crate) cancel_reason: Option<String>,
}

impl Message {
    /// Makes the message with `id`; the store has the content.
    pub(crate) fn stored(id: String) -> Self {
        Self {
            id,
            content: None,
            on_busy: OnBusy::Queue,
            cancel_reason: None,
        }
    }

    /// Makes a message with this id from a submit. A hand-typed empty text means no text.
    pub(crate) fn submitted(id: String, submit: Submit) -> Self {
        let given = |text: &String| !text.is_empty();
        Self {
            id,
            content: submit.content.filter(given),
            on_busy: submit
                .on_busy
                .filter(given)
                .map_or(OnBusy::Queue, OnBusy::from),
            cancel_reason: submit.cancel_reason.filter(given),
        }
    }
}

impl From<Message> for Submit {
    fn from(message: Message) -> Self {
        Self {
            message_id: Some(message.id),
            content: message.content,
            on_busy: (message.on_busy != OnBusy::Queue).then(|| message.on_busy.into()),
            cancel_reason: message.cancel_reason,
        }
    }
}

/// Messages in the order of their turns.
#[derive(Debug, Default, Clone)]
pub(crate) struct Inbox {
    waiting: VecDeque<Message>,
    early_cancels: VecDeque<EarlyCancel>,
}

/// A cancel that arrived before its message, because the signal of another gateway was faster.
#[derive(Debug, Clone)]
struct EarlyCancel {
    message_id: String,
    reason: String,
}

impl Inbox {
    /// Adds a message unless it waits already or the inbox is full (invariant 10, nothing grows without a bound). An
    /// interrupting message goes to the front, because the user wants its answer now. Returns true when the message was
    /// added.
    pub(crate) fn push(&mut self, message: Message) -> bool {
        match message.on_busy {
            OnBusy::Interrupt => {
                let is_new = self.has_room_for(&message);
                if is_new {
                    let message = self.with_early_cancel(message);
                    self.waiting.push_front(message);
                }
                is_new
            }
            OnBusy::Queue | OnBusy::Steer | OnBusy::Reject | OnBusy::Unknown(_) => {
                self.push_last(message)
            }
        }
    }

    /// Adds a message at the end, even an interrupting one, because the run before has already ordered the messages.
    /// Returns true when the message was added.
    pub(crate) fn push_last(&mut self, message: Message) -> bool {
        let is_new = self.has_room_for(&message);
        if is_new {
            let message = self.with_early_cancel(message);
            self.waiting.push_back(message);
        }
        is_new
    }

    fn with_early_cancel(&self, mut message: Message) -> Message {
        let mut cancels = self.early_cancels.iter();
        if let Some(cancel) = cancels.find(|cancel| cancel.message_id == message.id) {
            let reason = || cancel.reason.clone();
            message.cancel_reason.get_or_insert_with(reason);
        }
        message
    }

    fn has_room_for(&self, message: &Message) -> bool {
        self.waiting.len() < CAPACITY && !self.contains(&message.id)
    }

    /// Puts messages back to the front, in order: the run took them, but they had no turn.
    pub(crate) fn put_back(&mut self, messages: impl DoubleEndedIterator<Item = Message>) {
        for message in messages.rev() {
            self.waiting.push_front(message);
        }
    }

    /// Takes the message of the next turn.
    pub(crate) fn take_next(&mut self) -> Option<Message> {
        self.waiting.pop_front()
    }

    /// Takes a waiting message by id.
    pub(crate) fn take(&mut self, message_id: &str) -> Option<Message> {
        let index = self
            .waiting
            .iter()
            .position(|message| message.id == message_id)?;
        self.waiting.remove(index)
    }

    /// True when the first waiting message interrupts the running turn.
    pub(crate) fn has_interrupt(&self) -> bool {
        self.waiting
            .front()
            .is_some_and(|message| message.on_busy == OnBusy::Interrupt)
    }

    /// Notes the reason of a waiting message's cancel: its turn will end at its start. The first reason stays.
    pub(crate) fn cancel(&mut self, message_id: &str, reason: &str) {
        let waiting = self
            .waiting
            .iter_mut()
            .find(|message| message.id == message_id);
        if let Some(message) = waiting {
            message
                .cancel_reason
                .get_or_insert_with(|| reason.to_owned());
        }
    }

    /// Notes the cancel of a message before its arrival. After its arrival, the turn of the message ends at its start.
    pub(crate) fn cancel_early(&mut self, message_id: &str, reason: &str) {
        if self.early_cancels.len() >= MAX_EARLY_CANCELS {
            self.early_cancels.pop_front();
        }
        self.early_cancels.push_back(EarlyCancel {
            message_id: message_id.to_owned(),
            reason: reason.to_owned(),
        });
    }

    /// Takes the messages that join the running turn, in order. A cancelled message stays, because its own turn reports
    /// the cancel.
    pub(crate) fn take_steers(&mut self) -> Vec<Message> {
        let (steers, rest) = self.waiting.drain(..).partition(|message| {
            message.on_busy == OnBusy::Steer && message.cancel_reason.is_none()
        });
        self.waiting = rest;
        Vec::from_iter::<VecDeque<Message>>(steers)
    }

    pub(crate) fn contains(&self, message_id: &str) -> bool {
        self.waiting.iter().any(|message| message.id == message_id)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes every waiting message, for the next run.
    pub(crate) fn drain(&mut self) -> Vec<Submit> {
        self.waiting.drain(..).map(Submit::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, on_busy: OnBusy) -> Message {
        Message {
            on_busy,
            ..Message::stored(id.to_owned())
        }
    }

    fn ids(inbox: &mut Inbox) -> Vec<String> {
        let submits = inbox.drain().into_iter();
        submits.filter_map(|submit| submit.message_id).collect()
    }

    #[test]
    fn takes_in_order_and_interrupts_first() {
        let mut inbox = Inbox::default();
        let unknown = OnBusy::from("a newer word");
        for (id, on_busy) in [
            ("a", unknown),
            ("b", OnBusy::Queue),
            ("c", OnBusy::Interrupt),
        ] {
            assert!(inbox.push(message(id, on_busy)));
        }
        assert_eq!(ids(&mut inbox), ["c", "a", "b"]);
    }

    #[test]
    fn a_cancel_may_come_before_its_message() {
        let mut inbox = Inbox::default();
        for number in 0..2 * MAX_EARLY_CANCELS {
            inbox.cancel_early(&number.to_string(), "no longer needed");
        }
        assert_eq!(inbox.early_cancels.len(), MAX_EARLY_CANCELS);
        let last = (2 * MAX_EARLY_CANCELS - 1).to_string();
        for (id, on_busy) in [(last.as_str(), OnBusy::Interrupt), ("0", OnBusy::Queue)] {
            inbox.push(message(id, on_busy));
        }
        let reasons = [inbox.take(&last), inbox.take("0")];
        let reasons = reasons.map(|message| message.unwrap().cancel_reason);
        let kept = Some("no longer needed".to_owned());
        assert_eq!(reasons, [kept, None], "the oldest is forgotten");
    }

    #[test]
    fn steers_leave_the_queue_in_order() {
        let mut inbox = Inbox::default();
        for (id, on_busy) in [
            ("a", OnBusy::Queue),
            ("s1", OnBusy::Steer),
            ("b", OnBusy::Queue),
            ("s2", OnBusy::Steer),
        ] {
            inbox.push(message(id, on_busy));
        }
        let steers = inbox.take_steers();
        assert_eq!((steers[0].id.as_str(), steers[1].id.as_str()), ("s1", "s2"));
        assert_eq!(ids(&mut inbox), ["a", "b"]);
    }

    #[test]
    fn the_next_run_has_the_same_order() {
        let mut inbox = Inbox::default();
        for (id, on_busy) in [
            ("a", OnBusy::Queue),
            ("i1", OnBusy::Interrupt),
            ("i2", OnBusy::Interrupt),
        ] {
            inbox.push(message(id, on_busy));
        }
        let mut next = Inbox::default();
        for submit in inbox.drain() {
            let id = submit.message_id.clone().unwrap();
            assert!(next.push_last(Message::submitted(id.clone(), submit.clone())));
            assert!(!next.push_last(Message::submitted(id, submit)));
        }
        assert_eq!(ids(&mut next), ["i2", "i1", "a"]);
    }

    #[test]
    fn what_had_no_turn_is_put_back_in_order() {
        let mut inbox = Inbox::default();
        inbox.push(message("a", OnBusy::Queue));
        let taken = ["s1", "s2"].map(|id| message(id, OnBusy::Steer));
        inbox.put_back(taken.into_iter());
        assert_eq!(ids(&mut inbox), ["s1", "s2", "a"]);
    }

    #[test]
    fn refuses_doubles_and_overflow() {
        let mut inbox = Inbox::default();
        assert!(inbox.push(message("a", OnBusy::Queue)));
        assert!(!inbox.push(message("a", OnBusy::Queue)));
        for n in 1..CAPACITY {
            assert!(inbox.push(message(&n.to_string(), OnBusy::Queue)));
        }
        assert!(!inbox.push(message("one too many", OnBusy::Queue)));
        assert_eq!(inbox.len(), CAPACITY);
    }

    #[test]
    fn a_cancelled_steer_has_a_turn_of_its_own() {
        let mut inbox = Inbox::default();
        for id in ["s1", "s2"] {
            inbox.push(message(id, OnBusy::Steer));
        }
        for (id, reason) in [("s1", "first"), ("s1", "second"), ("unknown", "none")] {
            inbox.cancel(id, reason);
        }
        let steers = inbox.take_steers();
        assert_eq!(steers, [message("s2", OnBusy::Steer)]);
        let rest = inbox.drain();
        assert_eq!(rest[0].message_id.as_deref(), Some("s1"));
        assert_eq!(rest[0].cancel_reason.as_deref(), Some("first"));
    }

    #[test]
    fn a_message_goes_on_as_it_was_submitted() {
        let bare = Submit {
            message_id: Some("a".to_owned()),
            ..Submit::default()
        };
        let full = Submit {
            content: Some("Hello".to_owned()),
            on_busy: Some("steer".to_owned()),
            cancel_reason: Some("why".to_owned()),
            ..bare.clone()
        };
        for submit in [bare, full] {
            let message = Message::submitted("a".to_owned(), submit.clone());
            assert_eq!(Submit::from(message), submit);
        }
    }
}
