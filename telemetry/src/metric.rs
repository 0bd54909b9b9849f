//! The type of a metric.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use metrics::Label;

/// True in a process with `/metrics`.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Switches recording on, in a process with `/metrics`.
pub fn switch_on() {
    IS_ON.store(true, Ordering::Relaxed);
}

fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// A metric, with a series for every combination of labels.
#[derive(Debug)]
pub struct Metric {
    /// The name in Prometheus.
    pub name: &'static str,
    /// The kind of the metric.
    pub kind: Kind,
    /// The meaning, as a sentence.
    pub help: &'static str,
    /// The names of the labels.
    pub labels: &'static [&'static str],
}

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A number that only rises, from the start of the process.
    Counter,
    /// A number with a fraction that only rises, from the start of the process.
    Amount,
    /// The current value.
    Gauge,
    /// A histogram with these upper bounds.
    Histogram(&'static [f64]),
}

/// Upper bounds in seconds for times of milliseconds: calls of the store, requests, first deltas.
pub(crate) const SHORT: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// Upper bounds in seconds for times of seconds to hours: turns, calls of models and tools.
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

    pub(crate) const fn amount(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Self {
        Self::new(name, help, labels, Kind::Amount)
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

    /// Adds to an amount.
    pub(crate) fn add_amount(&self, amount: f64, values: &[&str]) {
        if is_on() {
            // The library's counters are whole numbers. The exporter gives the gauge the type of a counter.
            metrics::gauge!(self.name, self.labelled(values)).increment(amount);
        }
    }

    /// Sets a counter whose sum comes from the caller.
    pub(crate) fn set_total(&self, total: u64, values: &[&str]) {
        if is_on() {
            metrics::counter!(self.name, self.labelled(values)).absolute(total);
        }
    }

    /// Sets a gauge.
    pub(crate) fn set(&self, value: usize, values: &[&str]) {
        if is_on() {
            // A gauge never comes near 2^53.
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
