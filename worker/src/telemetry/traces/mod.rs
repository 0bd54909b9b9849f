//! The traces of turns, which are exported to an OpenTelemetry collector (docs/operate/traces.md).
//!
//! A turn is done by several processes, one after the other, and any of them may die. So the place of a turn in its trace is
//! kept beside it in the store (`TraceContexts`), and the span of an agent has an id that each process can work out.
//!
//! - `known`: the traces of agent executions, as far as this process has seen them
//! - `ids`: the ids of spans
//! - `activities`: in whose span an activity runs
//! - `turns`, `model`, `conversations`: the ports, with spans of what goes through them
//! - `remote`: tells the workers of remote tools
//! - `delivery`: what readers were shown
//! - `content`: texts of models and tools in spans, when the operator wants them
//!
//! Without an endpoint none of it is there. The workflow knows nothing of traces, and an error of theirs stops no turn.

mod activities;
mod content;
mod conversations;
mod delivery;
mod ids;
mod known;
mod model;
mod remote;
mod turns;

use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use everturn_activities::model::ModelClient;
use everturn_gateway::Deliveries;
use everturn_store::{Conversations, TraceContexts, TurnStore};
use everturn_telemetry::trace;
use opentelemetry::{KeyValue, global, trace::Status};
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{SdkTracerProvider, SpanLimits},
};

pub use self::{activities::TracedActivities, remote::tells_remote_tools};
use self::{
    content::Content, conversations::TracedConversations, delivery::TracedDeliveries,
    ids::StableIds, known::KnownTraces, model::TracedModel, turns::TracedTurns,
};
use crate::{cli::TraceOptions, version::version};

/// The path of OTLP below the endpoint.
const PATH: &str = "/v1/traces";
/// Events of one span: a delivery has one for each event of its turn, and a turn may have thousands.
const MAX_EVENTS: u32 = 256;

/// The traces of a process.
pub(super) struct Traces {
    provider: SdkTracerProvider,
    content: Content,
    known: OnceLock<Arc<KnownTraces>>,
}

impl Traces {
    /// Begins to export, if there is an endpoint. Once in a process.
    pub(super) fn start(options: &TraceOptions, role: &str) -> anyhow::Result<Option<Arc<Self>>> {
        let Some(endpoint) = &options.otlp_endpoint else {
            return Ok(None);
        };
        // The rest of a URL may hold secrets.
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

    /// Says where the traces of turns are kept. Before that, there are none of turns.
    pub(super) fn kept_in(&self, store: Arc<dyn TraceContexts>) {
        self.known.get_or_init(|| Arc::new(KnownTraces::new(store)));
    }

    pub(super) fn activities(&self) -> Option<TracedActivities> {
        self.known.get().cloned().map(TracedActivities::new)
    }

    pub(super) fn turns(&self, turns: Arc<dyn TurnStore>) -> Arc<dyn TurnStore> {
        match self.known.get() {
            Some(known) => Arc::new(TracedTurns::new(turns, Arc::clone(known), self.content)),
            None => turns,
        }
    }

    pub(super) fn model(&self, model: Arc<dyn ModelClient>) -> Arc<dyn ModelClient> {
        Arc::new(TracedModel::new(model, self.content))
    }

    pub(super) fn conversations(&self, port: Arc<dyn Conversations>) -> Arc<dyn Conversations> {
        match self.known.get() {
            Some(known) => Arc::new(TracedConversations::new(port, Arc::clone(known))),
            None => port,
        }
    }

    pub(super) fn deliveries(&self) -> Option<Arc<dyn Deliveries>> {
        let known = Arc::clone(self.known.get()?);
        Some(Arc::new(TracedDeliveries::start(known)))
    }

    /// Exports what has not been exported yet, for some seconds at the most.
    pub(super) fn end(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last spans were not exported");
        }
    }
}

/// The exporter has a thread of its own, without a runtime. A blocking client refuses to be made on a thread of one.
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

/// What each span says of its process. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` add to it.
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

/// A status that says that it failed, and why.
fn failed(why: impl Into<String>) -> Status {
    Status::Error {
        description: why.into().into(),
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
