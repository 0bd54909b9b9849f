//! The traces of the process's known agent executions.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use everturn_store::{KeptTrace, StoreError, TraceContext, TraceContexts, TraceKey};
use everturn_telemetry::trace::{TRACE_PARENT, TRACE_STATE};
use lru::LruCache;
use opentelemetry::{
    Context,
    propagation::TextMapPropagator,
    trace::{SpanContext, SpanId, TraceContextExt},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

use super::ids;

/// The most cached traces, which is more than a process's parallel agent executions. A removed trace is read from the
/// store again.
const KNOWN: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// A longer `tracestate` of other systems is left out, as W3C Trace Context allows (3.3.1.5).
const MAX_STATE_BYTES: usize = 512;

/// The position of an agent execution in its trace.
#[derive(Debug, Clone)]
pub(super) struct AgentTrace {
    /// The parent of the agent's span.
    pub(super) above: SpanContext,
    /// The agent's own span.
    pub(super) own: SpanId,
    /// The agent's name; `None` before the agent execution begins.
    pub(super) agent: Option<String>,
    /// The start of the agent execution.
    pub(super) begun_at: Option<SystemTime>,
}

impl AgentTrace {
    fn of(key: &TraceKey, kept: KeptTrace) -> Self {
        Self {
            above: read(kept.context),
            own: ids::span_of(&key.conversation_id, &key.agent_execution_id),
            agent: kept.agent,
            begun_at: kept.begun_at.map(SystemTime::from),
        }
    }

    /// Returns the context for direct children of the agent's span.
    pub(super) fn within(&self) -> Context {
        self.within_span(self.own)
    }

    /// Returns the context for children of the span with this id.
    pub(super) fn within_span(&self, span: SpanId) -> Context {
        let above = &self.above;
        Context::new().with_remote_span_context(SpanContext::new(
            above.trace_id(),
            span,
            above.trace_flags(),
            true,
            above.trace_state().clone(),
        ))
    }
}

/// The stored traces, with a cache of the last used ones. An error of the store is logged, and the trace is left out.
pub(super) struct KnownTraces {
    store: Arc<dyn TraceContexts>,
    last_used: Mutex<LruCache<TraceKey, AgentTrace>>,
}

impl KnownTraces {
    pub(super) fn new(store: Arc<dyn TraceContexts>) -> Self {
        Self {
            store,
            last_used: Mutex::new(LruCache::new(KNOWN)),
        }
    }

    /// Returns the position of an agent execution in its trace, or `None` without a trace.
    pub(super) async fn of(&self, key: &TraceKey) -> Option<AgentTrace> {
        let known = self.last_used().get(key).cloned();
        if known.is_some() {
            return known;
        }
        let kept = noted(self.store.trace_of(key).await).flatten()?;
        Some(self.remember(key, kept))
    }

    /// Stores the current span as the parent of the turn's span.
    pub(super) async fn offer(&self, key: &TraceKey) {
        let context = write(&Context::current());
        noted(self.store.offer_trace(key, &context).await);
    }

    /// Stores that an agent execution has begun. Its parent is the span of `offer` or, without an offer, the current
    /// span.
    pub(super) async fn begin(&self, key: &TraceKey, agent: &str) {
        let context = write(&Context::current());
        let kept = self.store.begin_trace(key, &context, agent).await;
        if let Some(kept) = noted(kept) {
            self.remember(key, kept);
        }
    }

    fn remember(&self, key: &TraceKey, kept: KeptTrace) -> AgentTrace {
        let trace = AgentTrace::of(key, kept);
        // An entry without an agent is incomplete: the agent execution has not begun.
        if trace.agent.is_some() {
            self.last_used().put(key.clone(), trace.clone());
        }
        trace
    }

    fn last_used(&self) -> MutexGuard<'_, LruCache<TraceKey, AgentTrace>> {
        self.last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn noted<T>(answer: Result<T, StoreError>) -> Option<T> {
    answer
        .inspect_err(|error| tracing::debug!(%error, "a trace goes without a part of a turn"))
        .ok()
}

fn write(context: &Context) -> TraceContext {
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(context, &mut headers);
    let mut trace_state = headers.remove(TRACE_STATE).unwrap_or_default();
    if trace_state.len() > MAX_STATE_BYTES {
        trace_state.clear();
    }
    TraceContext {
        trace_parent: headers.remove(TRACE_PARENT).unwrap_or_default(),
        trace_state,
    }
}

fn read(kept: TraceContext) -> SpanContext {
    let headers = HashMap::from([
        (TRACE_PARENT.to_owned(), kept.trace_parent),
        (TRACE_STATE.to_owned(), kept.trace_state),
    ]);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    context.span().span_context().clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_in_a_trace_reads_as_it_was_written() {
        let kept = TraceContext {
            trace_parent: "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01".to_owned(),
            trace_state: "vendor=1".to_owned(),
        };
        let above = read(kept.clone());
        assert!(above.is_sampled() && above.is_remote());
        let context = Context::new().with_remote_span_context(above);
        assert_eq!(write(&context), kept);
    }
}
