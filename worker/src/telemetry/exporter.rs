//! Exports the metrics in Prometheus' format.

use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use everturn_telemetry::{Kind, Metric, all, names, switch_on};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the SDK's histograms, in seconds, from calls to whole turns.
const OF_ENGINE: &[f64] = &[
    0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0, 3600.0,
];

/// All metrics of this process.
pub(super) struct Exporter {
    handle: PrometheusHandle,
    samples: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
}

impl Exporter {
    /// Begins to record the metrics of this process.
    pub(super) fn install() -> anyhow::Result<Self> {
        let mut builder = PrometheusBuilder::new().set_buckets(OF_ENGINE)?;
        for metric in all() {
            if let Kind::Histogram(bounds) = metric.kind {
                let name = Matcher::Full(metric.name.to_owned());
                builder = builder.set_buckets_for_metric(name, bounds)?;
            }
        }
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder)
            .context("the metrics of the process are already recorded")?;
        all().for_each(describe);
        switch_on();
        Ok(Self {
            handle,
            samples: Mutex::default(),
        })
    }

    /// Registers `sample`, which runs before each export of the metrics.
    pub(super) fn sample(&self, sample: impl Fn() + Send + Sync + 'static) {
        self.lock().push(Box::new(sample));
    }

    /// Returns every metric in Prometheus' text format.
    pub(super) fn text(&self) -> String {
        for sample in self.lock().iter() {
            sample();
        }
        typed(self.handle.render()) + &owners()
    }

    /// Aggregates the values of histograms, which otherwise stay in memory until the next export. The caller runs
    /// `tidy` every few seconds, because perhaps no Prometheus server reads the metrics.
    pub(super) fn tidy(&self) {
        self.handle.run_upkeep();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Box<dyn Fn() + Send + Sync>>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives amounts the type of a counter. The library has counters of whole numbers alone, so amounts are recorded as gauges.
fn typed(text: String) -> String {
    let amounts = all().filter(|metric| metric.kind == Kind::Amount);
    amounts.fold(text, |text, Metric { name, .. }| {
        text.replacen(
            &format!("# TYPE {name} gauge\n"),
            &format!("# TYPE {name} counter\n"),
            1,
        )
    })
}

/// Returns the owners of agents in Prometheus' text format. A recorder keeps every series until the process ends, and an
/// agent has only its present owner. Therefore each export has a recorder of its own for the owners.
fn owners() -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        describe(&names::AGENT_INFO);
        names::record_owners();
    });
    recorder.handle().render()
}

fn describe(metric: &Metric) {
    match metric.kind {
        Kind::Counter => metrics::describe_counter!(metric.name, metric.help),
        Kind::Gauge | Kind::Amount => metrics::describe_gauge!(metric.name, metric.help),
        Kind::Histogram(_) => metrics::describe_histogram!(metric.name, metric.help),
    }
}
