//! The OpenTelemetry Collector, which writes what it gets into a file, and traces as trees.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Stdio,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{temporal::free_port, wait};

/// A collector that runs. It ends when this is dropped.
pub struct Collector {
    directory: TempDir,
    port: u16,
    _process: Child,
}

/// A span as the collector got it.
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

impl Collector {
    /// Starts one, and waits until it listens.
    pub async fn start() -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/bin/otelcol");
        assert!(program.is_file(), "run `make collector`");
        let (directory, port) = (TempDir::new().unwrap(), free_port());
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("collector/config.yaml");
        let process = Command::new(program)
            .arg("--config")
            .arg(config)
            .env("OTLP_GRPC", format!("127.0.0.1:{}", free_port()))
            .env("OTLP_HTTP", format!("127.0.0.1:{port}"))
            .env("OTLP_FILE", directory.path().join("out"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(directory.path().join("log")).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let started = Self {
            directory,
            port,
            _process: process,
        };
        wait::until("the collector listens", || async {
            let connection = tokio::net::TcpStream::connect(("127.0.0.1", port));
            connection.await.ok()
        })
        .await;
        started
    }

    /// The address for OTLP over HTTP.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All spans that it got.
    pub fn spans(&self) -> Vec<Span> {
        let text = fs::read_to_string(self.directory.path().join("out")).unwrap_or_default();
        let requests = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        requests.flat_map(|request| spans_of(&request)).collect()
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

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn spans_of(request: &Value) -> Vec<Span> {
    let mut spans = Vec::new();
    for resource in list(request, "resourceSpans") {
        let service = &attributes(&resource["resource"])["service.name"];
        for scope in list(resource, "scopeSpans") {
            let of = |span| span_of(span, service);
            spans.extend(list(scope, "spans").iter().map(of));
        }
    }
    spans
}

fn span_of(span: &Value, service: &str) -> Span {
    let text = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
    let time = |key: &str| text(key).parse().unwrap();
    Span {
        name: text("name"),
        trace_id: text("traceId"),
        id: text("spanId"),
        parent: text("parentSpanId"),
        service: service.to_owned(),
        attributes: attributes(span),
        events: list(span, "events")
            .iter()
            .map(|event| event["name"].as_str().unwrap().to_owned())
            .collect(),
        is_failed: span["status"]["code"] == 2,
        time: (time("startTimeUnixNano"), time("endTimeUnixNano")),
    }
}

fn attributes(of: &Value) -> BTreeMap<String, String> {
    let pair = |pair: &Value| {
        let value = pair["value"]
            .as_object()
            .and_then(|value| value.values().next());
        let value = value.cloned().unwrap_or_default();
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (pair["key"].as_str().unwrap().to_owned(), text)
    };
    list(of, "attributes").iter().map(pair).collect()
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
