//! The telemetry of a process: its health and its metrics (docs/operate/health.md), and traces of turns
//! (docs/operate/traces.md).
//!
//! - `server`: the listener for health and metrics, on a thread of its own
//! - `health`: the state of the process
//! - `exporter`: the metrics in Prometheus' format
//! - `configured`: the agents and tools of the configuration, for labels
//! - `engine_meter`: the metrics of Temporal's SDK
//! - `traces`: the traces of turns
//! - `measured_turns`: observes the store's calls for turns
//! - `refused_payloads`: counts the signals and answers that workflows refuse
//! - `measured_leases`, `measured_model`, `measured_stream`: the workers' ports, with metrics
//!
//! Without an address to listen on, no metrics are recorded. Without an endpoint, no traces are made. Then no observer
//! exists, and workers use the models and the stream directly.
//!
//! Must not be here: names of metrics (`telemetry/`).

mod configured;
mod engine_meter;
mod exporter;
mod health;
mod measured_leases;
mod measured_model;
mod measured_stream;
mod measured_turns;
mod refused_payloads;
mod server;
mod traces;

use std::sync::Arc;

use anyhow::Context;
use everturn_config::Config;
use everturn_gateway::{Deliveries, connections::listener};
use everturn_models::ModelClient;
use everturn_store::{
    ConnectionUsage, MessageQueue, Observers, TraceContexts, TurnObserver, WorkerLeases,
};
use everturn_stream::StreamWriter;
use everturn_telemetry::{names, process, turns};
use temporalio_common::telemetry::TelemetryOptions as EngineTelemetryOptions;
use temporalio_sdk::runtime::RuntimeOptions;
use tokio_util::sync::CancellationToken;

use self::{
    engine_meter::{EngineMeter, Pollers},
    exporter::Exporter,
    health::Health,
    measured_leases::MeasuredLeases,
    measured_model::MeasuredModel,
    measured_stream::MeasuredStream,
    measured_turns::MeasuredTurns,
    traces::Traces,
};
use crate::{cli::TelemetryOptions, version::version};

pub use self::{
    refused_payloads::counts_refused_payloads,
    traces::{TracedActivities, tells_remote_tools},
};

pub use self::health::NotReady;

/// The health, the metrics and the traces of a process. Clones share their state.
#[derive(Clone, Default)]
pub struct Telemetry {
    served: Option<Arc<Served>>,
    traces: Option<Arc<Traces>>,
}

struct Served {
    health: Arc<Health>,
    exporter: Arc<Exporter>,
    engine: Arc<EngineMeter>,
}

impl Telemetry {
    /// Starts the telemetry of a process with this role. Serves health and metrics if the options have an address, and
    /// exports traces if the options have an endpoint. Call `start` before the process connects to anything, so that
    /// probes get answers from the beginning. Call it within a tokio runtime, and only once per process.
    pub fn start(options: &TelemetryOptions, role: &'static str) -> anyhow::Result<Self> {
        let traces = Traces::start(&options.traces, role)?;
        let Some(listen) = options.health_listen else {
            return Ok(Self {
                served: None,
                traces,
            });
        };
        let listener = listener::bind(listen).and_then(tokio::net::TcpListener::into_std);
        let listener = listener.with_context(|| {
            format!(
                "cannot listen on {listen} for health and metrics; choose another address with --health-listen"
            )
        })?;
        let exporter = Arc::new(Exporter::install()?);
        process::started(version(), role);
        let health = Arc::new(Health::begin());
        tracing::info!(address = %listener.local_addr()?, "health and metrics are served");
        server::serve(listener, Arc::clone(&health), Arc::clone(&exporter))?;
        Ok(Self {
            served: Some(Arc::new(Served {
                health,
                exporter,
                engine: Arc::default(),
            })),
            traces,
        })
    }

    /// Sets the service for which the starting process waits.
    pub fn waits_for(&self, what: &'static str) {
        if let Some(served) = &self.served {
            served.health.waits_for(what);
        }
    }

    /// Marks the process as running until `shutdown`. Each readiness probe calls `check`.
    pub fn runs<F>(
        &self,
        shutdown: &CancellationToken,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<(), NotReady>> + Send + 'static,
    {
        if let Some(served) = &self.served {
            served.health.runs(shutdown.clone(), check);
        }
    }

    /// Marks a worker as running, like [`Telemetry::runs`]. The worker is ready while it polls for tasks.
    pub fn worker_runs(&self, shutdown: &CancellationToken) {
        if let Some(served) = &self.served {
            let pollers = served.engine.pollers();
            self.runs(shutdown, move || std::future::ready(polls(&pollers)));
        }
    }

    /// True in a process that serves metrics.
    pub fn is_served(&self) -> bool {
        self.served.is_some()
    }

    /// Registers `sample`, which records values just before each export of the metrics.
    pub fn sample(&self, sample: impl Fn() + Send + Sync + 'static) {
        if let Some(served) = &self.served {
            served.exporter.sample(sample);
        }
    }

    /// Takes over the agents and tools of the configuration, at the start and after a change of the files. Labels may
    /// have their names.
    pub fn agents(&self, config: &Config) {
        if self.served.is_some() {
            names::configured(configured::configured(config));
        }
    }

    /// Takes over the agents and tools of a worker's configuration, like [`Telemetry::agents`], and begins the series of
    /// the agents' counters.
    pub fn worker_agents(&self, config: &Config) {
        if self.served.is_some() {
            self.agents(config);
            turns::begin_series();
        }
    }

    /// Adds the store's connections to the metrics.
    pub fn sample_connections(&self, store: Arc<dyn ConnectionUsage>) {
        self.sample(move || {
            let connections = store.connections();
            process::connections(connections.idle, connections.busy, connections.limit);
        });
    }

    /// Returns the observers of turns, for metrics and traces.
    pub fn turn_observers(&self) -> Observers {
        let measured = self.served.as_ref();
        let measured = measured.map(|_| Arc::new(MeasuredTurns::new()) as Arc<dyn TurnObserver>);
        let traced = self.traces.as_ref().and_then(|traces| traces.turns());
        measured.into_iter().chain(traced).collect()
    }

    /// Wraps the store of worker leases with metrics.
    pub fn leases(&self, leases: Arc<dyn WorkerLeases>) -> Arc<dyn WorkerLeases> {
        match self.served {
            Some(_) => Arc::new(MeasuredLeases::new(leases)),
            None => leases,
        }
    }

    /// Wraps the client of models with metrics.
    pub fn model(&self, model: Arc<dyn ModelClient>) -> Arc<dyn ModelClient> {
        let model = match self.served {
            Some(_) => Arc::new(MeasuredModel::new(model)),
            None => model,
        };
        match &self.traces {
            Some(traces) => traces.model(model),
            None => model,
        }
    }

    /// Wraps the port to waiting messages. The wrapper stores the traces of incoming requests.
    pub fn messages(&self, port: Arc<dyn MessageQueue>) -> Arc<dyn MessageQueue> {
        match &self.traces {
            Some(traces) => traces.messages(port),
            None => port,
        }
    }

    /// Returns the receiver of delivery reports, if traces are exported. Must be called within a tokio runtime.
    pub fn deliveries(&self) -> Option<Arc<dyn Deliveries>> {
        self.traces.as_ref()?.deliveries()
    }

    /// Sets the store of the turns' traces. Must be called before any port is wrapped.
    pub fn keep_traces_in(&self, store: Arc<dyn TraceContexts>) {
        if let Some(traces) = &self.traces {
            traces.kept_in(store);
        }
    }

    /// Returns the interceptor of activities for the traces of turns.
    pub fn activities(&self) -> TracedActivities {
        let traced = self.traces.as_ref().and_then(|traces| traces.activities());
        traced.unwrap_or_default()
    }

    /// Exports the remaining spans, for some seconds at most.
    pub async fn end(self) {
        if let Some(traces) = self.traces {
            // `end` blocks its thread.
            let _ended = tokio::task::spawn_blocking(move || traces.end()).await;
        }
    }

    /// Wraps the writing side of the stream with metrics.
    pub fn stream(&self, stream: Arc<dyn StreamWriter>) -> Arc<dyn StreamWriter> {
        match self.served {
            Some(_) => Arc::new(MeasuredStream::new(stream)),
            None => stream,
        }
    }

    /// Returns the options of Temporal's SDK. With the options, the SDK records its metrics here.
    pub fn engine_options(&self) -> RuntimeOptions {
        let Some(served) = &self.served else {
            return RuntimeOptions::default();
        };
        let telemetry = EngineTelemetryOptions::builder()
            .metrics(Arc::clone(&served.engine) as Arc<_>)
            .build();
        // The builder refuses only a wrong interval of heartbeats, and the interval is not set here.
        RuntimeOptions::builder()
            .telemetry_options(telemetry)
            .build()
            .unwrap_or_default()
    }
}

fn polls(pollers: &Pollers) -> Result<(), NotReady> {
    if pollers.are_there() {
        Ok(())
    } else {
        Err(NotReady::because("the worker does not poll Temporal yet"))
    }
}
