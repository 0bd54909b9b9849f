//! Exports the metrics in Prometheus' format.

use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use everturn_telemetry::{Kind, all, switch_on};
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
        describe();
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
        self.handle.render()
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

fn describe() {
    for metric in all() {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.help),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
            Kind::Histogram(_) => metrics::describe_histogram!(metric.name, metric.help),
        }
    }
}
