//! Counts the looks, the dead workers and the restarts of a gateway, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters for metrics, from the start of the process.
#[derive(Debug, Default)]
pub struct LostWorkerCounts {
    looks: AtomicU64,
    workers: AtomicU64,
    activities: AtomicU64,
}

impl LostWorkerCounts {
    /// Returns the number of looks at the leases.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Returns the number of dead workers whose lease this gateway took.
    pub fn workers(&self) -> u64 {
        self.workers.load(Ordering::Relaxed)
    }

    /// Returns the number of restarted activities of dead and stopped workers.
    pub fn activities(&self) -> u64 {
        self.activities.load(Ordering::Relaxed)
    }

    pub(super) fn add_look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_workers(&self, count: usize) {
        self.workers.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn add_activities(&self, count: u64) {
        self.activities.fetch_add(count, Ordering::Relaxed);
    }
}
