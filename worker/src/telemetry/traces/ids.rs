//! The ids of spans: random ones, and those that each process works out for the same thing.

use std::cell::Cell;

use opentelemetry::{SpanId, TraceId};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use sha2::{Digest, Sha256};

thread_local! {
    /// The id of the span that this thread begins next.
    static NEXT: Cell<Option<SpanId>> = const { Cell::new(None) };
}

/// Gives random ids, except to a span that is begun in [`with_id`].
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

/// Has `begin` begin a span with this id.
pub(super) fn with_id<T>(id: SpanId, begin: impl FnOnce() -> T) -> T {
    NEXT.set(Some(id));
    let begun = begin();
    NEXT.set(None);
    begun
}

/// The id of the span of an agent execution, or of a tool execution that another worker runs.
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
