//! Exports traces of turns to an OpenTelemetry collector (docs/operate/traces.md).
//!
//! Several processes work on a turn one after the other, and any of them may die. Therefore the store keeps the turn's
//! trace context (`TraceContexts`) next to the turn, and every process computes the same id for an agent's span.
//!
//! - `known`: the traces of agent executions that this process knows
//! - `ids`: the ids of spans
//! - `activities`: the span around an activity
//! - `turns`, `model`, `messages`: the ports, wrapped with spans
//! - `remote`: sends the span to workers of remote tools
//! - `delivery`: the delivery of events to readers
//! - `failed`: the status of a failed span
//! - `content`: texts of models and tools in spans, if the operator wants them
//!
//! Without an endpoint, the process makes no traces. The workflow knows nothing of traces, and an error in the tracing
//! stops no turn.

mod activities;
mod content;
mod delivery;
mod failed;
mod ids;
mod known;
mod messages;
mod model;
mod remote;
mod turns;

use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use everturn_gateway::Deliveries;
use everturn_models::ModelClient;
use everturn_store::{MessageQueue, TraceContexts, TurnObserver};
use everturn_telemetry::trace;
use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{SdkTracerProvider, SpanLimits},
};

pub use self::{activities::TracedActivities, remote::tells_remote_tools};
use self::{
    content::Content,
    delivery::{MAX_EVENTS, TracedDeliveries},
    ids::StableIds,
    known::KnownTraces,
    messages::TracedMessages,
    model::TracedModel,
    turns::TracedTurns,
};
use crate::{cli::TraceOptions, version::version};

/// The path of OTLP below the endpoint.
const PATH: &str = "/v1/traces";

/// The traces of a process.
pub(super) struct Traces {
    provider: SdkTracerProvider,
    content: Content,
    known: OnceLock<Arc<KnownTraces>>,
}

impl Traces {
    /// Starts the export, if the options have an endpoint. Must be called only once per process.
    pub(super) fn start(options: &TraceOptions, role: &str) -> anyhow::Result<Option<Arc<Self>>> {
        let Some(endpoint) = &options.otlp_endpoint else {
            return Ok(None);
        };
        // The rest of the URL may contain secrets.
        let shown = endpoint.origin().ascii_serialization();
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(http_client()?)
            .with_endpoint(with_path(endpoint.as_str()))
            .build()
            .with_context(|| format!("traces cannot be exported to {shown}"))?;
        let provider = SdkTracerProvider::builder()
            .with_id_generator(StableIds::default())
            .with_resource(resource(role))
            .with_span_limits(SpanLimits {
                max_events_per_span: MAX_EVENTS,
                ..SpanLimits::default()
            })
            .with_batch_exporter(exporter)
            .build();
        global::set_tracer_provider(provider.clone());
        global::set_text_map_propagator(TraceContextPropagator::new());
        trace::switch_on();
        tracing::info!(endpoint = shown, "traces are exported");
        Ok(Some(Arc::new(Self {
            provider,
            content: Content::new(options.trace_content),
            known: OnceLock::new(),
        })))
    }

    /// Sets the store of the turns' traces. Before the call, turns have no traces.
    pub(super) fn kept_in(&self, store: Arc<dyn TraceContexts>) {
        self.known.get_or_init(|| Arc::new(KnownTraces::new(store)));
    }

    pub(super) fn activities(&self) -> Option<TracedActivities> {
        self.known.get().cloned().map(TracedActivities::new)
    }

    /// Returns the observer of turns, if traces are kept.
    pub(super) fn turns(&self) -> Option<Arc<dyn TurnObserver>> {
        let known = Arc::clone(self.known.get()?);
        Some(Arc::new(TracedTurns::new(known, self.content)))
    }

    pub(super) fn model(&self, model: Arc<dyn ModelClient>) -> Arc<dyn ModelClient> {
        Arc::new(TracedModel::new(model, self.content))
    }

    pub(super) fn messages(&self, port: Arc<dyn MessageQueue>) -> Arc<dyn MessageQueue> {
        match self.known.get() {
            Some(known) => Arc::new(TracedMessages::new(port, Arc::clone(known))),
            None => port,
        }
    }

    pub(super) fn deliveries(&self) -> Option<Arc<dyn Deliveries>> {
        let known = Arc::clone(self.known.get()?);
        Some(Arc::new(TracedDeliveries::start(known)))
    }

    /// Exports the remaining spans, for some seconds at most.
    pub(super) fn end(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last spans were not exported");
        }
    }
}

/// Returns the exporter's HTTP client. The exporter has a thread of its own without a runtime, and a blocking client
/// cannot be made on a runtime's thread.
fn http_client() -> anyhow::Result<reqwest::blocking::Client> {
    std::thread::spawn(reqwest::blocking::Client::new)
        .join()
        .map_err(|_| anyhow::anyhow!("cannot set up the HTTP client of traces"))
}

fn with_path(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    if endpoint.ends_with(PATH) {
        endpoint.to_owned()
    } else {
        format!("{endpoint}{PATH}")
    }
}

/// Returns the attributes of the process, which each span has. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` add
/// further attributes.
fn resource(role: &str) -> Resource {
    let resource = Resource::builder().with_attributes([
        KeyValue::new("service.version", version()),
        KeyValue::new("service.instance.id", uuid::Uuid::new_v4().to_string()),
    ]);
    match std::env::var_os("OTEL_SERVICE_NAME") {
        Some(_) => resource.build(),
        None => resource
            .with_service_name(format!("everturn-{role}"))
            .build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_given_with_or_without_its_path() {
        for endpoint in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
            assert_eq!(with_path(endpoint), "http://c:4318/v1/traces");
        }
        assert_eq!(
            with_path("https://c/api/public/otel"),
            "https://c/api/public/otel/v1/traces"
        );
    }
}
