//! Adds the metrics of Temporal's SDK to ours. The metrics keep their names, and get the suffixes of Prometheus:
//! `_total` for counters, `_seconds` for times.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use metrics::Label;
use temporalio_common::telemetry::metrics::{
    CoreMeter, Counter, CounterBase, Gauge, GaugeBase, GaugeF64, GaugeF64Base, Histogram,
    HistogramBase, HistogramDuration, HistogramDurationBase, HistogramF64, HistogramF64Base,
    MetricAttributable, MetricAttributes, MetricParameters, NewAttributes, UpDownCounter,
    UpDownCounterBase,
};

/// The SDK's gauge of open poll requests.
const POLLERS: &str = "temporal_num_pollers";

/// Records the metrics of the SDK.
#[derive(Debug, Default)]
pub(super) struct EngineMeter {
    pollers: Arc<Pollers>,
}

/// The number of this process's open poll requests, by the labels of the gauge.
#[derive(Debug, Default)]
pub(super) struct Pollers(Mutex<HashMap<Vec<Label>, u64>>);

impl Pollers {
    /// True while this process polls for tasks.
    pub(super) fn are_there(&self) -> bool {
        self.lock().values().any(|number| *number > 0)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<Label>, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EngineMeter {
    pub(super) fn pollers(&self) -> Arc<Pollers> {
        Arc::clone(&self.pollers)
    }

    fn instrument(&self, params: &MetricParameters, ending: &str) -> Arc<Instrument> {
        let is_pollers = params.name == POLLERS;
        Arc::new(Instrument {
            name: format!("{}{ending}", params.name),
            pollers: is_pollers.then(|| self.pollers()),
        })
    }
}

/// Returns the labels of the SDK's attributes. A meter must choose among the SDK's own attribute types, and `NoOp` is
/// a plain map.
fn labels_of(attributes: &MetricAttributes) -> Vec<Label> {
    let MetricAttributes::NoOp(labels) = attributes else {
        return Vec::new();
    };
    let mut labels: Vec<_> = labels
        .iter()
        .map(|(name, value)| Label::new(name.clone(), value.clone()))
        .collect();
    labels.sort();
    labels
}

impl CoreMeter for EngineMeter {
    fn new_attributes(&self, attributes: NewAttributes) -> MetricAttributes {
        MetricAttributes::NoOp(Arc::new(attributes.into()))
    }

    fn extend_attributes(
        &self,
        existing: MetricAttributes,
        attributes: NewAttributes,
    ) -> MetricAttributes {
        let mut all = match existing {
            MetricAttributes::NoOp(labels) => Arc::unwrap_or_clone(labels),
            _ => HashMap::new(),
        };
        all.extend(HashMap::from(attributes));
        MetricAttributes::NoOp(Arc::new(all))
    }

    fn counter(&self, params: MetricParameters) -> Counter {
        Counter::new(self.instrument(&params, "_total"))
    }

    fn histogram(&self, params: MetricParameters) -> Histogram {
        Histogram::new(self.instrument(&params, ""))
    }

    fn histogram_f64(&self, params: MetricParameters) -> HistogramF64 {
        HistogramF64::new(self.instrument(&params, ""))
    }

    fn histogram_duration(&self, params: MetricParameters) -> HistogramDuration {
        HistogramDuration::new(self.instrument(&params, "_seconds"))
    }

    fn gauge(&self, params: MetricParameters) -> Gauge {
        Gauge::new(self.instrument(&params, ""))
    }

    fn gauge_f64(&self, params: MetricParameters) -> GaugeF64 {
        GaugeF64::new(self.instrument(&params, ""))
    }

    fn up_down_counter(&self, params: MetricParameters) -> UpDownCounter {
        UpDownCounter::new(self.instrument(&params, ""))
    }
}

/// A metric without its labels.
struct Instrument {
    name: String,
    pollers: Option<Arc<Pollers>>,
}

/// A metric with its labels.
struct Bound<T>(T);

/// A gauge with its labels. `pollers` is set for the gauge of open poll requests only.
struct BoundGauge {
    gauge: metrics::Gauge,
    pollers: Option<(Arc<Pollers>, Vec<Label>)>,
}

macro_rules! bound {
    ($base:ident, $method:ident($value:ty), $make:ident, $record:expr) => {
        impl MetricAttributable<Box<dyn $base>> for Instrument {
            fn with_attributes(
                &self,
                attributes: &MetricAttributes,
            ) -> Result<Box<dyn $base>, Box<dyn Error>> {
                let metric = metrics::$make!(self.name.clone(), labels_of(attributes));
                Ok(Box::new(Bound(metric)))
            }
        }

        impl $base for Bound<bound!(@handle $make)> {
            fn $method(&self, value: $value) {
                $record(&self.0, value);
            }
        }
    };
    (@handle counter) => { metrics::Counter };
    (@handle gauge) => { metrics::Gauge };
    (@handle histogram) => { metrics::Histogram };
}

bound!(CounterBase, adds(u64), counter, metrics::Counter::increment);
bound!(
    HistogramBase,
    records(u64),
    histogram,
    |histogram: &metrics::Histogram, value| histogram.record(rounded(value))
);
bound!(
    HistogramF64Base,
    records(f64),
    histogram,
    |histogram: &metrics::Histogram, value: f64| histogram.record(value)
);
bound!(
    HistogramDurationBase,
    records(Duration),
    histogram,
    |histogram: &metrics::Histogram, value: Duration| histogram.record(value.as_secs_f64())
);
bound!(
    GaugeF64Base,
    records(f64),
    gauge,
    |gauge: &metrics::Gauge, value: f64| gauge.set(value)
);
// The SDK counts few things up and down, and no count exceeds 32 bits.
bound!(
    UpDownCounterBase,
    adds(i64),
    gauge,
    |gauge: &metrics::Gauge, value: i64| gauge
        .increment(f64::from(i32::try_from(value).unwrap_or_default()))
);

impl MetricAttributable<Box<dyn GaugeBase>> for Instrument {
    fn with_attributes(
        &self,
        attributes: &MetricAttributes,
    ) -> Result<Box<dyn GaugeBase>, Box<dyn Error>> {
        let labels = labels_of(attributes);
        let gauge = metrics::gauge!(self.name.clone(), labels.clone());
        let pollers = self.pollers.clone().map(|pollers| (pollers, labels));
        Ok(Box::new(BoundGauge { gauge, pollers }))
    }
}

impl GaugeBase for BoundGauge {
    fn records(&self, value: u64) {
        self.gauge.set(rounded(value));
        if let Some((pollers, labels)) = &self.pollers {
            pollers.lock().insert(labels.clone(), value);
        }
    }
}

/// Converts a value to the type of metrics, which keeps 15 digits.
#[allow(clippy::cast_precision_loss)]
fn rounded(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_polls_while_one_of_its_gauges_says_so() {
        let meter = EngineMeter::default();
        let pollers = meter.pollers();
        let labels = |kind: &'static str| {
            meter.new_attributes(NewAttributes::from([
                temporalio_common::telemetry::metrics::MetricKeyValue::new("poller_type", kind),
            ]))
        };
        let gauge = meter.gauge(MetricParameters::from(POLLERS));
        assert!(!pollers.are_there());
        gauge.record(2, &labels("workflow_task"));
        gauge.record(0, &labels("activity_task"));
        assert!(pollers.are_there());
        gauge.record(0, &labels("workflow_task"));
        assert!(!pollers.are_there());
    }
}
