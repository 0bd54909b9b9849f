//! A receiver of OTLP over HTTP in the test's process, and traces as trees.
//!
//! The messages are those of the OpenTelemetry protocol (opentelemetry-proto). A request with another path, method, media
//! type or body is refused, as a collector refuses it, and fails the test that waits for its spans.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{Span as SentSpan, status::StatusCode as SpanStatus},
};
use prost::Message;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::wait;

const PROTOBUF: &str = "application/x-protobuf";

/// The most bytes of one request: a batch of 512 spans with long texts.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

type Received = Arc<Mutex<Vec<Span>>>;

/// A running receiver. Dropping the receiver closes its port.
pub struct Collector {
    port: u16,
    spans: Received,
    serving: JoinHandle<()>,
}

/// A received span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The name.
    pub name: String,
    /// The trace, as 32 hex digits.
    pub trace_id: String,
    /// The span, as 16 hex digits.
    pub id: String,
    /// The span above; empty for a root.
    pub parent: String,
    /// The process that made it.
    pub service: String,
    /// Its attributes, with numbers as text.
    pub attributes: BTreeMap<String, String>,
    /// The names of its events.
    pub events: Vec<String>,
    /// True when its status is an error.
    pub is_failed: bool,
    /// Begin and end, in nanoseconds since 1970.
    pub time: (u64, u64),
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Collector {
    /// Starts a receiver on a free port.
    pub async fn start() -> Self {
        let spans = Received::default();
        let router = Router::new()
            .route("/v1/traces", post(receive))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .with_state(Arc::clone(&spans));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            port,
            spans,
            serving,
        }
    }

    /// The address for OTLP over HTTP.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns all received spans.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }

    /// Waits until a trace has a span for each of these names, and returns its spans. Each process exports its own.
    pub async fn trace(&self, trace_id: &str, names: &[&str]) -> Vec<Span> {
        wait::until(&format!("the collector has {names:?}"), || async {
            let mut spans = self.spans();
            spans.retain(|span| span.trace_id == trace_id);
            let wanted = |name: &str| names.iter().filter(|wanted| **wanted == name).count();
            let found = |name: &str| spans.iter().filter(|span| span.name == name).count();
            let has = names.iter().all(|name| found(name) >= wanted(name));
            has.then_some(spans)
        })
        .await
    }
}

async fn receive(
    State(received): State<Received>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<([(&'static str, &'static str); 1], Vec<u8>), StatusCode> {
    if headers.get(CONTENT_TYPE).is_none_or(|it| it != PROTOBUF) {
        return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let request = ExportTraceServiceRequest::decode(body).map_err(|_| StatusCode::BAD_REQUEST)?;
    received.lock().unwrap().extend(spans_of(request));
    let answer = ExportTraceServiceResponse::default().encode_to_vec();
    Ok(([("content-type", PROTOBUF)], answer))
}

fn spans_of(request: ExportTraceServiceRequest) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in request.resource_spans {
        let attributes = attributes(of_resource.resource.unwrap_or_default().attributes);
        let service = &attributes["service.name"];
        for scope in of_resource.scope_spans {
            let of = |span| span_of(span, service);
            spans.extend(scope.spans.into_iter().map(of));
        }
    }
    spans
}

fn span_of(span: SentSpan, service: &str) -> Span {
    Span {
        name: span.name,
        trace_id: hex::encode(&span.trace_id),
        id: hex::encode(&span.span_id),
        parent: hex::encode(&span.parent_span_id),
        service: service.to_owned(),
        attributes: attributes(span.attributes),
        events: span.events.into_iter().map(|event| event.name).collect(),
        is_failed: span
            .status
            .is_some_and(|status| status.code() == SpanStatus::Error),
        time: (span.start_time_unix_nano, span.end_time_unix_nano),
    }
}

fn attributes(of: Vec<KeyValue>) -> BTreeMap<String, String> {
    let pair = |pair: KeyValue| (pair.key, pair.value.map_or_else(String::new, text));
    of.into_iter().map(pair).collect()
}

fn text(value: AnyValue) -> String {
    match value.value {
        None => String::new(),
        Some(Value::StringValue(text)) => text,
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::IntValue(value)) => value.to_string(),
        Some(Value::DoubleValue(value)) => value.to_string(),
        Some(other) => format!("{other:?}"),
    }
}

/// Writes the spans of one trace as a tree below this span: a line for each, indented by its depth, in the order of their
/// begin. Panics when a span is not in the tree, or twice.
pub fn tree(spans: &[Span], root: &str) -> Vec<String> {
    let ids: BTreeSet<_> = spans.iter().map(|span| &span.id).collect();
    assert_eq!(ids.len(), spans.len(), "a span came twice: {spans:#?}");
    let mut lines = Vec::new();
    add_below(spans, root, 0, &mut lines);
    assert_eq!(lines.len(), spans.len(), "not one tree: {spans:#?}");
    lines
}

fn add_below(spans: &[Span], parent: &str, depth: usize, lines: &mut Vec<String>) {
    let mut children: Vec<_> = spans.iter().filter(|span| span.parent == parent).collect();
    children.sort_by_key(|span| span.time);
    for span in children {
        lines.push(format!("{}{}", "  ".repeat(depth), span.name));
        add_below(spans, &span.id, depth + 1, lines);
    }
}
