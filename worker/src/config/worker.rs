//! `[worker]`: what one worker does at once.

use std::{ops::RangeInclusive, time::Duration};

use serde::Deserialize;
use toml::Spanned;

use super::checker::{Checker, HOUR, SECOND};

/// The fewest slots. There are at least 2, because the engine's pollers need one for the sticky queue and one for the other.
const MIN_SLOTS: usize = 2;
const MAX_SLOTS: usize = 100_000;
/// A worker that is replaced more often would mostly begin. With the most, what the SDK keeps is 4.5 GB.
const RENEWALS: RangeInclusive<usize> = 10..=10_000_000;

/// The longest lease of a worker. With a longer one, heartbeats tell sooner that a worker is dead.
pub(crate) const MAX_LEASE: Duration = Duration::from_secs(30);

/// Limits of a worker.
#[derive(Debug, Clone)]
pub struct WorkerLimits {
    /// LLM calls and tools at once. Default 200: most of the time they wait for other services.
    pub max_concurrent_activities: usize,
    /// Workflow tasks at once. Default 100: each takes milliseconds.
    pub max_concurrent_workflow_tasks: usize,
    /// Turns kept in memory between tasks. Default 1000: each takes some tens of KB. A turn that is not kept is
    /// replayed from its history.
    pub max_cached_workflows: usize,
    /// How long activities may take to end after SIGTERM. Default 20 s: less than the 30 s of Kubernetes.
    pub graceful_shutdown: Duration,
    /// How long a turn that needs an agent, a tool or a provider that this worker does not know is left to other
    /// workers. Default 5 min: a rollout has replaced some of the workers by then.
    pub wait_for_peer: Duration,
    /// How long other processes take this worker for alive after its last sign of life. Default 2 s: it gives four signs
    /// in this time, so a database or a machine that stalls for a second costs nothing. What a dead worker did begins
    /// again elsewhere after this time and some half a second.
    pub lease: Duration,
    /// How long a model of a chain that has failed is left alone, before one call tries it again. Default 60 s: most outages
    /// of a provider take minutes.
    pub circuit: Duration,
    /// Number of activities, saves included, after which the SDK's worker is replaced by a fresh one. Default 10,000: the SDK
    /// keeps some 450 bytes of each until then, 4.5 MB.
    pub renew_after_activities: usize,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self {
            max_concurrent_activities: 200,
            max_concurrent_workflow_tasks: 100,
            max_cached_workflows: 1000,
            graceful_shutdown: Duration::from_secs(20),
            wait_for_peer: Duration::from_mins(5),
            lease: Duration::from_secs(2),
            circuit: Duration::from_mins(1),
            renew_after_activities: 10_000,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WorkerTable {
    max_concurrent_activities: Option<Spanned<usize>>,
    max_concurrent_workflow_tasks: Option<Spanned<usize>>,
    max_cached_workflows: Option<Spanned<usize>>,
    graceful_shutdown: Option<Spanned<String>>,
    wait_for_peer: Option<Spanned<String>>,
    lease: Option<Spanned<String>>,
    circuit: Option<Spanned<String>>,
    renew_after_activities: Option<Spanned<usize>>,
}

impl WorkerTable {
    pub(super) fn check(&self, check: &mut Checker<'_>) -> WorkerLimits {
        let default = WorkerLimits::default();
        let mut slots = |key, value: &Option<Spanned<usize>>, default| {
            check.number(key, value, default, MIN_SLOTS..=MAX_SLOTS)
        };
        WorkerLimits {
            max_concurrent_activities: slots(
                "max_concurrent_activities",
                &self.max_concurrent_activities,
                default.max_concurrent_activities,
            ),
            max_concurrent_workflow_tasks: slots(
                "max_concurrent_workflow_tasks",
                &self.max_concurrent_workflow_tasks,
                default.max_concurrent_workflow_tasks,
            ),
            max_cached_workflows: slots(
                "max_cached_workflows",
                &self.max_cached_workflows,
                default.max_cached_workflows,
            ),
            graceful_shutdown: check.duration(
                "graceful_shutdown",
                &self.graceful_shutdown,
                default.graceful_shutdown,
                SECOND..=HOUR,
            ),
            wait_for_peer: check.duration(
                "wait_for_peer",
                &self.wait_for_peer,
                default.wait_for_peer,
                Duration::ZERO..=HOUR,
            ),
            lease: check.duration("lease", &self.lease, default.lease, SECOND..=MAX_LEASE),
            circuit: check.duration(
                "circuit",
                &self.circuit,
                default.circuit,
                Duration::ZERO..=HOUR,
            ),
            renew_after_activities: check.number(
                "renew_after_activities",
                &self.renew_after_activities,
                default.renew_after_activities,
                RENEWALS,
            ),
        }
    }
}
