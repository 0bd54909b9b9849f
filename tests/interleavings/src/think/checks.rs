//! Attempts of one step that read the context of a thread at the same time, while the thread grows and is cut.

use std::{iter::once, sync::Arc};

use everturn_proto::{LogId, Thread, words::MessageRole};
use everturn_store::{ContextMessage, ModelContext, ReadBefore};
use shuttle::{sync::Mutex, thread};

use super::known_contexts::KnownContexts;
use crate::orders::in_many_orders;

/// The messages of the thread at the end of a check.
const LAST: u32 = 5;

/// A stored thread: a summary of the messages up to `cut`, if there is a cut, and the messages up to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stored {
    cut: u32,
    last: u32,
}

fn message(role: MessageRole, sequence_number: u32) -> ContextMessage {
    ContextMessage {
        sequence_number,
        ..ContextMessage::text(role, "x")
    }
}

impl Stored {
    /// Reads as the store does: the messages after an earlier read of the same cut, or every message.
    fn read(self, before: Option<ReadBefore>) -> ModelContext {
        let before = before.filter(|before| before.cut == self.cut);
        let summary = (before.is_none() && self.cut > 0).then_some(self.cut);
        let after = before.map_or(self.cut, |before| before.last_sequence);
        let messages = (after + 1..=self.last).map(|number| message(MessageRole::User, number));
        ModelContext {
            messages: summary
                .map(|cut| message(MessageRole::Summary, cut))
                .into_iter()
                .chain(messages)
                .collect(),
            has_more: false,
            goes_on: before.is_some(),
        }
    }
}

/// Reads as an attempt of a step does, and compares the context with the stored thread.
fn attempt(known: &KnownContexts, thread: &(LogId, Thread), stored: &Mutex<Stored>) {
    let before = known.read(thread);
    let read_from = *stored.lock().unwrap();
    let context = known.add(thread, before, read_from.read(before));
    if let Some(context) = context {
        assert_eq!(context, read_from.read(None), "another context");
    }
}

fn thread_named(name: &str) -> (LogId, Thread) {
    (LogId::from(name.to_owned()), Thread::Conversation)
}

/// An attempt gets the context as stored at its read, or no context. At the end, the bytes of the known contexts are
/// counted exactly: two contexts fit into the bytes of two contexts.
pub fn attempts_get_the_stored_context() {
    in_many_orders(|| {
        let most = 2 * usize::try_from(LAST).unwrap();
        let known = Arc::new(KnownContexts::with_limit(most));
        let stored = Arc::new(Mutex::new(Stored { cut: 0, last: 2 }));
        let thread = thread_named("a");
        attempt(&known, &thread, &stored);
        let reader = || {
            let (known, stored, thread) = (Arc::clone(&known), Arc::clone(&stored), thread.clone());
            thread::spawn(move || {
                attempt(&known, &thread, &stored);
                attempt(&known, &thread, &stored);
            })
        };
        let readers = [reader(), reader()];
        let changes = [(0, 3), (3, 4), (3, LAST)].map(|(cut, last)| Stored { cut, last });
        for change in changes
            .into_iter()
            .chain(once(Stored { cut: 0, last: LAST }))
        {
            *stored.lock().unwrap() = change;
        }
        for reader in readers {
            reader.join().unwrap();
        }
        let threads = ["a", "b"].map(thread_named);
        for thread in &threads {
            known.add(thread, None, stored.lock().unwrap().read(None));
        }
        let is_known = |thread| known.read(thread).is_some();
        assert!(
            threads.iter().all(is_known),
            "bytes of a gone context count"
        );
    });
}
