//! The counters of a reconciler, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that only rise, from the start of the process.
#[derive(Debug, Default)]
pub struct ReconcilerCounts {
    checked: AtomicU64,
    signalled: AtomicU64,
    started: AtomicU64,
    failed: AtomicU64,
    stuck: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReconcilerNumbers {
    /// Checked conversations, which had no event for a while.
    pub checked: u64,
    /// Messages and cancels signalled again.
    pub signalled: u64,
    /// Started workflows, for turns and for hooks after turns without a workflow.
    pub started: u64,
    /// Turns ended with an error.
    pub failed: u64,
    /// Stuck workflows. Every look counts a stuck workflow anew.
    pub stuck: u64,
}

impl ReconcilerCounts {
    /// Reads the counters.
    pub fn numbers(&self) -> ReconcilerNumbers {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReconcilerNumbers {
            checked: read(&self.checked),
            signalled: read(&self.signalled),
            started: read(&self.started),
            failed: read(&self.failed),
            stuck: read(&self.stuck),
        }
    }

    pub(super) fn checked(&self, conversations: usize) {
        self.checked
            .fetch_add(conversations as u64, Ordering::Relaxed);
    }

    pub(super) fn signalled(&self) {
        self.signalled.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn started(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stuck(&self) {
        self.stuck.fetch_add(1, Ordering::Relaxed);
    }
}
