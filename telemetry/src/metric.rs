//! What a metric is.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use metrics::Label;

/// True in a process that serves its metrics.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Begins to record, because this process serves its metrics.
pub fn switch_on() {
    IS_ON.store(true, Ordering::Relaxed);
}

fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// One metric, of which there is a series for each combination of labels.
#[derive(Debug)]
pub struct Metric {
    /// Its name in Prometheus.
    pub name: &'static str,
    /// How it counts.
    pub kind: Kind,
    /// What it says, as a sentence.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
}

/// How a metric counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// It only rises, from the start of the process.
    Counter,
    /// It is as it is now.
    Gauge,
    /// It counts values by these upper bounds.
    Histogram(&'static [f64]),
}

/// Upper bounds for what takes milliseconds, in seconds: calls of the store, requests, first words.
pub(crate) const SHORT: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// Upper bounds for what takes seconds to hours, in seconds: turns, calls of models and tools.
pub(crate) const LONG: &[f64] = &[
    0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 21600.0,
];

impl Metric {
    const fn new(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        kind: Kind,
    ) -> Self {
        Self {
            name,
            kind,
            help,
            labels,
        }
    }

    pub(crate) const fn counter(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Self {
        Self::new(name, help, labels, Kind::Counter)
    }

    pub(crate) const fn gauge(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Self {
        Self::new(name, help, labels, Kind::Gauge)
    }

    pub(crate) const fn histogram(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        bounds: &'static [f64],
    ) -> Self {
        Self::new(name, help, labels, Kind::Histogram(bounds))
    }

    /// Adds to a counter.
    pub(crate) fn add(&self, number: u64, values: &[&str]) {
        if is_on() {
            metrics::counter!(self.name, self.labelled(values)).increment(number);
        }
    }

    /// Sets a counter that is counted elsewhere.
    pub(crate) fn set_total(&self, total: u64, values: &[&str]) {
        if is_on() {
            metrics::counter!(self.name, self.labelled(values)).absolute(total);
        }
    }

    /// Sets a gauge.
    pub(crate) fn set(&self, value: usize, values: &[&str]) {
        if is_on() {
            // No gauge here comes near 2^53.
            #[allow(clippy::cast_precision_loss)]
            metrics::gauge!(self.name, self.labelled(values)).set(value as f64);
        }
    }

    /// Adds a value to a histogram.
    pub(crate) fn observe(&self, value: f64, values: &[&str]) {
        if is_on() {
            metrics::histogram!(self.name, self.labelled(values)).record(value);
        }
    }

    /// Adds a time to a histogram, in seconds.
    pub(crate) fn took(&self, duration: Duration, values: &[&str]) {
        self.observe(duration.as_secs_f64(), values);
    }

    fn labelled(&self, values: &[&str]) -> Vec<Label> {
        debug_assert_eq!(self.labels.len(), values.len(), "{}", self.name);
        let labels = self.labels.iter().zip(values);
        labels
            .map(|(name, value)| Label::new(*name, (*value).to_owned()))
            .collect()
    }
}
