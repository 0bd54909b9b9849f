//! The inbox of a run: the doorbell, and the run's last look at the waiting messages.
//!
//! Pure data. The store has the waiting messages with their order, their policies and their cancels. A signal only
//! rings, so a signal may be repeated, lost or late. The inbox keeps the texts and cancels of typed signals until the next
//! look stores the contents.

use everturn_proto::{
    limits::MAX_QUEUED_MESSAGES,
    turn::{Cancel, Inbox as Waiting, Submit},
};

/// The message of a turn. Every message has an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: String,
    /// The text; absent when the text is in the row of `messages`.
    pub(crate) content: Option<String>,
}

impl Message {
    /// Makes the message with `id`; the store has the content.
    pub(crate) fn stored(id: String) -> Self {
        Self { id, content: None }
    }
}

/// The doorbell and the last look.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    rings: u32,
    /// The rings before the last look.
    answered: u32,
    /// Messages with a text, which the store does not have yet.
    submits: Vec<Submit>,
    /// Cancels of messages other than the running turn's, which the store does not have yet.
    cancels: Vec<Cancel>,
    waiting: Waiting,
}

/// A look at the store: the rings that the look answers, and the contents of signals to store.
pub(crate) struct Look {
    rings: u32,
    pub(crate) submits: Vec<Submit>,
    pub(crate) cancels: Vec<Cancel>,
}

impl Inbox {
    /// Makes the inbox of a run. `has_rung` is true when messages may wait already.
    pub(crate) fn new(has_rung: bool) -> Self {
        Self {
            rings: u32::from(has_rung),
            ..Self::default()
        }
    }

    /// Notes that the store has something new for the run.
    pub(crate) fn ring(&mut self) {
        self.rings = self.rings.wrapping_add(1);
    }

    /// Takes a message with a text, and rings. A full inbox leaves the message out (invariant 10, nothing grows without a
    /// bound).
    pub(crate) fn submit(&mut self, submit: Submit) {
        if self.submits.len() < MAX_QUEUED_MESSAGES {
            self.submits.push(submit);
            self.ring();
        }
    }

    /// Takes the cancel of a message other than the running turn's, and rings.
    pub(crate) fn cancel(&mut self, cancel: Cancel) {
        if self.cancels.len() < MAX_QUEUED_MESSAGES {
            self.cancels.push(cancel);
        }
        self.ring();
    }

    /// True when the run has to look: somebody has rung since the last look.
    pub(crate) fn has_rung(&self) -> bool {
        self.rings != self.answered
    }

    /// True when a message may wait: somebody has rung, or the last look found a message.
    pub(crate) fn may_have_more(&self) -> bool {
        self.has_rung() || self.waiting.waiting > 0
    }

    /// Begins a look. The run has to look until [`Self::end_look`].
    pub(crate) fn begin_look(&mut self) -> Look {
        Look {
            rings: self.rings,
            submits: std::mem::take(&mut self.submits),
            cancels: std::mem::take(&mut self.cancels),
        }
    }

    /// Ends a look with the waiting messages; `None` after a failed look.
    pub(crate) fn end_look(&mut self, look: &Look, found: Option<Waiting>) {
        self.answered = look.rings;
        if let Some(found) = found {
            self.waiting = found;
        }
    }

    /// Takes the messages that join the running turn, in order.
    pub(crate) fn take_steers(&mut self) -> Vec<String> {
        std::mem::take(&mut self.waiting.steers)
    }

    /// Takes the message of the next turn. The number of the other messages stays. A turn that runs already looks again,
    /// because a waiting message may interrupt or join the turn.
    pub(crate) fn take_next(&mut self) -> Option<String> {
        let next = self.waiting.next.take()?;
        if std::mem::take(&mut self.waiting.next_runs) {
            self.ring();
        }
        self.waiting.waiting = self.waiting.waiting.saturating_sub(1);
        Some(next)
    }

    /// Returns the number of waiting messages that the run knows of.
    pub(crate) fn len(&self) -> usize {
        let stored = usize::try_from(self.waiting.waiting).unwrap_or(usize::MAX);
        stored.saturating_add(self.submits.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(id: &str) -> Submit {
        Submit {
            message_id: Some(id.to_owned()),
            content: Some("Hello".to_owned()),
            on_busy: None,
        }
    }

    #[test]
    fn a_look_answers_the_rings_before_its_start() {
        let mut inbox = Inbox::default();
        assert!(!inbox.has_rung() && !inbox.may_have_more());
        inbox.ring();
        inbox.ring();
        let look = inbox.begin_look();
        assert!(inbox.has_rung(), "the look has not ended");
        inbox.ring();
        inbox.end_look(&look, None);
        assert!(inbox.has_rung(), "somebody rang during the look");
        let look = inbox.begin_look();
        inbox.end_look(&look, None);
        assert!(!inbox.has_rung());
        assert!(Inbox::new(true).has_rung());
    }

    #[test]
    fn a_look_takes_what_signals_brought_once() {
        let mut inbox = Inbox::default();
        inbox.submit(text("a"));
        inbox.cancel(Cancel {
            message_id: Some("b".to_owned()),
            reason: "no longer needed".to_owned(),
        });
        assert_eq!(inbox.len(), 1);
        let look = inbox.begin_look();
        assert_eq!(look.submits, [text("a")]);
        assert_eq!(look.cancels.len(), 1);
        let next = inbox.begin_look();
        assert!(next.submits.is_empty() && next.cancels.is_empty());
    }

    #[test]
    fn the_last_look_knows_steers_and_the_next_message() {
        let mut inbox = Inbox::default();
        let look = inbox.begin_look();
        let found = Waiting {
            cancel_reason: None,
            steers: vec!["s1".to_owned(), "s2".to_owned()],
            next: Some("s1".to_owned()),
            waiting: 3,
            next_runs: false,
        };
        inbox.end_look(&look, Some(found.clone()));
        assert!(inbox.may_have_more() && !inbox.has_rung());
        assert_eq!(inbox.take_steers(), ["s1", "s2"]);
        assert!(inbox.take_steers().is_empty());
        assert_eq!(inbox.take_next().as_deref(), Some("s1"));
        assert_eq!((inbox.take_next(), inbox.len()), (None, 2));
        assert!(!inbox.has_rung());
        let runs = Waiting {
            next_runs: true,
            ..found
        };
        inbox.end_look(&look, Some(runs));
        inbox.take_next();
        assert!(inbox.has_rung(), "a turn that runs already looks again");
    }

    #[test]
    fn contents_of_signals_are_bounded() {
        let mut inbox = Inbox::default();
        for number in 0..2 * MAX_QUEUED_MESSAGES {
            inbox.submit(text(&number.to_string()));
            inbox.cancel(Cancel::default());
        }
        let look = inbox.begin_look();
        assert_eq!(look.submits.len(), MAX_QUEUED_MESSAGES);
        assert_eq!(look.cancels.len(), MAX_QUEUED_MESSAGES);
    }
}
