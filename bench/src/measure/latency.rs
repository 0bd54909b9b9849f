//! Latencies and their percentiles.

use std::time::Duration;

use everturn_tests::crowd::percentile;

use super::Samples;

/// Latencies of a sample.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Adds a latency.
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Returns the median in milliseconds.
    pub(crate) fn median_ms(mut self) -> f64 {
        self.0.sort_unstable();
        percentile(&self.0, 50).as_secs_f64() * 1000.0
    }

    /// Returns the 99th percentile in milliseconds.
    pub(crate) fn p99_ms(mut self) -> f64 {
        self.0.sort_unstable();
        percentile(&self.0, 99).as_secs_f64() * 1000.0
    }

    /// Returns the median and the maximum.
    pub(crate) fn median_and_most(mut self) -> (Duration, Duration) {
        self.0.sort_unstable();
        (percentile(&self.0, 50), percentile(&self.0, 100))
    }

    /// Adds the median, 95th and 99th percentile to the samples, in milliseconds. The figures are named `p50_ms`,
    /// `p95_ms` and `p99_ms` after the prefix.
    pub(crate) fn tell(mut self, prefix: &str, samples: &mut Samples) {
        self.0.sort_unstable();
        for per_cent in [50, 95, 99] {
            let value = percentile(&self.0, per_cent).as_secs_f64() * 1000.0;
            samples.add(format!("{prefix}p{per_cent}_ms"), value);
        }
    }
}
