//! The ids of spans: random ids, and stable ids, which every process computes from the same names.

use std::cell::Cell;

use opentelemetry::{SpanId, TraceId};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use sha2::{Digest, Sha256};

thread_local! {
    /// The id of the next span on this thread.
    static NEXT: Cell<Option<SpanId>> = const { Cell::new(None) };
}

/// Generates random ids, except for a span within [`with_id`].
#[derive(Debug, Default)]
pub(super) struct StableIds {
    random: RandomIdGenerator,
}

impl IdGenerator for StableIds {
    fn new_trace_id(&self) -> TraceId {
        self.random.new_trace_id()
    }

    fn new_span_id(&self) -> SpanId {
        NEXT.take().unwrap_or_else(|| self.random.new_span_id())
    }
}

/// Runs `begin`, which begins a span with the given id.
pub(super) fn with_id<T>(id: SpanId, begin: impl FnOnce() -> T) -> T {
    NEXT.set(Some(id));
    let begun = begin();
    NEXT.set(None);
    begun
}

/// Returns the span id of an agent execution, or of a tool execution on a remote worker.
pub(super) fn span_of(conversation_id: &str, id: &str) -> SpanId {
    let mut digest = Sha256::new();
    for part in ["span", conversation_id, id] {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest.finalize()[..8]);
    SpanId::from_bytes(bytes)
}
