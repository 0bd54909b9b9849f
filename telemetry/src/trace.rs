//! The trace of a turn for code within the turn: the current span, and the headers that pass the span on (W3C Trace
//! Context).
//!
//! The spans are OpenTelemetry's. A process without an export of traces makes no span and sends no headers ([`switch_on`]).
//!
//! Must not be here: how traces are exported, and the spans of turns (`worker/src/telemetry/traces/`).

use std::{
    borrow::Cow,
    sync::atomic::{AtomicBool, Ordering},
};

use opentelemetry::{
    Context, KeyValue,
    context::FutureExt,
    global,
    propagation::{Extractor, Injector},
    trace::{SpanKind, Status, TraceContextExt, Tracer},
};

/// The name of the instrumentation in the spans of Everturn.
pub const SCOPE: &str = "everturn";
/// The header with the trace and the span of a request (W3C Trace Context).
pub const TRACE_PARENT: &str = "traceparent";
/// The header with the state of other systems (W3C Trace Context).
pub const TRACE_STATE: &str = "tracestate";

/// True in a process that exports traces.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Switches spans on, in a process that exports traces.
pub fn switch_on() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// Runs a future in the caller's span, also on another thread.
pub fn carried<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future.with_current_context()
}

/// Returns the headers that pass the caller's span to another system: `traceparent`, and `tracestate` where the trace has a
/// state. Without a span, the list is empty.
pub fn headers() -> Vec<(String, String)> {
    let mut headers = Headers(Vec::new());
    if IS_ON.load(Ordering::Relaxed) {
        global::get_text_map_propagator(|propagator| propagator.inject(&mut headers));
    }
    headers.0.retain(|(_, value)| !value.is_empty());
    headers.0
}

struct Headers(Vec<(String, String)>);

impl Injector for Headers {
    fn set(&mut self, key: &str, value: String) {
        self.0.push((key.to_owned(), value));
    }
}

/// A request's headers of W3C Trace Context.
#[derive(Debug, Clone, Copy, Default)]
pub struct Received<'a> {
    /// [`TRACE_PARENT`].
    pub parent: Option<&'a str>,
    /// [`TRACE_STATE`].
    pub state: Option<&'a str>,
}

impl Extractor for Received<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            TRACE_PARENT => self.parent,
            TRACE_STATE => self.state,
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACE_PARENT, TRACE_STATE]
    }
}

/// The span of an HTTP request. The drop ends the span.
pub struct RequestSpan(Context);

impl RequestSpan {
    /// Begins the span of a request, within the trace of the request's headers. Returns `None` in a process without an
    /// export of traces, and for a request without an endpoint.
    pub fn begin(
        method: &'static str,
        route: Option<&str>,
        received: Received<'_>,
    ) -> Option<Self> {
        let route = route.filter(|_| IS_ON.load(Ordering::Relaxed))?;
        let above = global::get_text_map_propagator(|propagator| {
            propagator.extract_with_context(&Context::new(), &received)
        });
        let tracer = global::tracer(SCOPE);
        let span = tracer
            .span_builder(format!("{method} {route}"))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("http.request.method", method),
                KeyValue::new("http.route", route.to_owned()),
            ])
            .start_with_context(&tracer, &above);
        Some(Self(above.with_span(span)))
    }

    /// Runs the request's handler in the span.
    pub fn around<F: Future>(&self, handler: F) -> impl Future<Output = F::Output> {
        handler.with_context(self.0.clone())
    }

    /// Notes the status of the answer.
    pub fn answered(&self, status: u16) {
        let span = self.0.span();
        span.set_attribute(KeyValue::new(
            "http.response.status_code",
            i64::from(status),
        ));
        if status >= 500 {
            span.set_status(Status::Error {
                description: Cow::Borrowed(""),
            });
        }
    }
}
