//! The contexts that this worker has read recently, so that a step reads only the new messages: in a long turn, one
//! message of a thousand. The store confirms with each read whether the known messages are still valid.

use std::sync::PoisonError;

use everturn_proto::{
    LogId, Thread,
    limits::{MAX_CONTEXT_BYTES, MAX_CONTEXT_MESSAGES},
};
use everturn_store::{ContextMessage, ModelContext, ReadBefore};
use lru::LruCache;

use super::window::message_bytes;
use crate::sync::{Mutex, MutexGuard};

/// The most bytes of the known contexts together: enough for sixteen parallel turns with windows of a million tokens,
/// or for a thousand ordinary turns. The least recently used context leaves first.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The known messages of threads.
#[derive(Debug)]
pub(super) struct KnownContexts {
    known: Mutex<Known>,
    max_bytes: usize,
}

#[derive(Debug)]
struct Known {
    contexts: LruCache<(LogId, Thread), Read>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Read {
    messages: Vec<ContextMessage>,
    bytes: usize,
}

impl Default for KnownContexts {
    fn default() -> Self {
        Self::with_limit(MAX_BYTES)
    }
}

impl KnownContexts {
    pub(super) fn with_limit(max_bytes: usize) -> Self {
        let known = Known {
            contexts: LruCache::unbounded(),
            bytes: 0,
        };
        Self {
            known: Mutex::new(known),
            max_bytes,
        }
    }

    /// Returns the reference to the known messages of this thread.
    pub(super) fn read(&self, thread: &(LogId, Thread)) -> Option<ReadBefore> {
        let mut known = self.lock();
        let read = known.contexts.get(thread)?;
        ReadBefore::of(&read.messages)
    }

    /// Adds the messages read now, and returns the whole context. `None` when the known messages before them are gone,
    /// or when the whole is more than one read returns: the caller must then read the context from its beginning.
    pub(super) fn add(
        &self,
        thread: &(LogId, Thread),
        before: Option<ReadBefore>,
        read: ModelContext,
    ) -> Option<ModelContext> {
        let Read {
            mut messages,
            mut bytes,
        } = self.lock().take(thread);
        if !read.goes_on {
            (messages, bytes) = (Vec::new(), 0);
        } else if ReadBefore::of(&messages) != before {
            // Another attempt of the step has read meanwhile, or the known context was evicted.
            return None;
        }
        bytes += read.messages.iter().map(message_bytes).sum::<usize>();
        messages.extend(read.messages);
        if messages.len() > MAX_CONTEXT_MESSAGES as usize || bytes > MAX_CONTEXT_BYTES as usize {
            return None;
        }
        // Long contexts are copied outside the lock, because other turns wait for the lock.
        let kept = Read {
            messages: messages.clone(),
            bytes,
        };
        self.lock().put(thread, kept, self.max_bytes);
        Some(ModelContext {
            messages,
            has_more: read.has_more,
            goes_on: false,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn take(&mut self, thread: &(LogId, Thread)) -> Read {
        let read = self.contexts.pop(thread).unwrap_or_default();
        self.bytes -= read.bytes;
        read
    }

    fn put(&mut self, thread: &(LogId, Thread), read: Read, max_bytes: usize) {
        self.bytes += read.bytes;
        if let Some(replaced) = self.contexts.put(thread.clone(), read) {
            self.bytes -= replaced.bytes;
        }
        while self.bytes > max_bytes
            && let Some((_, oldest)) = self.contexts.pop_lru()
        {
            self.bytes -= oldest.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use everturn_proto::words::MessageRole;

    use super::*;

    fn thread(name: &str) -> (LogId, Thread) {
        (LogId::from(name.to_owned()), Thread::Conversation)
    }

    fn message(sequence: u32) -> ContextMessage {
        ContextMessage {
            sequence_number: sequence,
            ..ContextMessage::text(MessageRole::User, "x".repeat(1000))
        }
    }

    fn read(sequences: &[u32], goes_on: bool) -> ModelContext {
        ModelContext {
            messages: sequences
                .iter()
                .map(|sequence| message(*sequence))
                .collect(),
            has_more: false,
            goes_on,
        }
    }

    fn sequences(context: Option<ModelContext>) -> Vec<u32> {
        let messages = context.unwrap().messages;
        messages
            .iter()
            .map(|message| message.sequence_number)
            .collect()
    }

    #[test]
    fn what_is_new_is_added_to_what_was_read() {
        let (known, of) = (KnownContexts::default(), thread("a"));
        assert_eq!(known.read(&of), None);
        assert_eq!(
            sequences(known.add(&of, None, read(&[1, 2], false))),
            [1, 2]
        );
        let before = known.read(&of);
        assert_eq!(before.unwrap().last_sequence, 2);
        assert_eq!(
            sequences(known.add(&of, before, read(&[5], true))),
            [1, 2, 5]
        );
        assert_eq!(known.read(&thread("b")), None);
        // The stored context has changed since the read.
        let before = known.read(&of);
        assert_eq!(sequences(known.add(&of, before, read(&[7], false))), [7]);
        // Somebody else has read meanwhile.
        assert_eq!(known.add(&of, before, read(&[9], true)), None);
        assert_eq!(known.read(&of), None, "and it is read anew");
    }

    #[test]
    fn the_oldest_go_when_it_is_too_much() {
        let known = KnownContexts::with_limit(3 * message_bytes(&message(1)));
        for name in ["a", "b", "c"] {
            known.add(&thread(name), None, read(&[1], false));
        }
        known.read(&thread("a"));
        known.add(&thread("d"), None, read(&[1], false));
        let is_known = |name: &&str| known.read(&thread(name)).is_some();
        let names = ["a", "b", "c", "d"];
        assert_eq!(names.iter().filter(|it| is_known(it)).count(), 3);
        assert!(!is_known(&"b"));
        known.add(&thread("e"), None, read(&[1, 2, 3, 4], false));
        assert!(!names.iter().any(is_known));
        assert_eq!(known.lock().bytes, 0, "one that is too long is not kept");
    }
}
