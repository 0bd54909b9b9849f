//! `[worker]`: the limits of one worker.

use std::time::Duration;

use everturn_models::WaitLimits;
use everturn_proto::limits::{MAX_PROVIDER_WAIT_S, MIN_PROVIDER_WAIT_S};
use serde::Deserialize;

use super::{
    checker::Checker,
    forms::{DAY, HOUR, MINUTE, Number, SECOND, Time, Written},
};

/// Temporal's pollers need at least 2 slots: one slot for the sticky queue and one for the normal queue.
type Slots = Number<2, 100_000, usize>;
/// The allowed numbers of activities before a renewal. With fewer, a worker would mostly be starting. With the most,
/// the SDK keeps 4.5 GB.
type Renewals = Number<10, 10_000_000, usize>;
/// The workflow gives each attempt of an LLM call the longest time.
type ProviderWait =
    Time<{ MIN_PROVIDER_WAIT_S as u64 * SECOND }, { MAX_PROVIDER_WAIT_S as u64 * SECOND }>;
type Lease = Time<SECOND, { MAX_LEASE.as_secs() * SECOND }>;

/// The longest lease of a worker. With a longer lease, Temporal's heartbeats would detect a dead worker earlier than
/// the lease does.
pub const MAX_LEASE: Duration = Duration::from_secs(30);

/// The part of the slots that the waiting calls of a provider may hold. The other slots stay free for running calls, for
/// other providers and for tools.
const WAITING_PART: usize = 4;
/// The most calls that wait for a provider on a worker, however many slots the worker has: every waiting call looks at
/// each change of the queue.
const MAX_WAITING: usize = 100;

/// Limits of a worker.
#[derive(Debug, Clone)]
pub struct WorkerLimits {
    /// LLM calls and tools in parallel. Default 200, because the calls mostly wait for other services.
    pub max_concurrent_activities: usize,
    /// Workflow tasks in parallel. Default 100, because each task takes milliseconds.
    pub max_concurrent_workflow_tasks: usize,
    /// Turns kept in memory between workflow tasks. Default 1000, because each turn takes some tens of KB. A turn
    /// outside the cache is replayed from its history.
    pub max_cached_workflows: usize,
    /// The time that activities have to end after SIGTERM. Default 20 s, which is less than the 30 s of Kubernetes.
    pub graceful_shutdown: Duration,
    /// The time for which this worker leaves a turn to other workers because it does not know the turn's agent, tool
    /// or provider. Default 5 min: by then, a rollout has replaced some of the workers.
    pub wait_for_peer: Duration,
    /// The time after a heartbeat in which other processes take the worker for alive. Default 2 s. The worker
    /// sends four heartbeats in that time, so a database or a machine may stall for a second without harm. The work of
    /// a dead worker begins again elsewhere after the lease and about half a second.
    pub lease: Duration,
    /// The time for which an LLM call waits in its slot for the configured limits of its provider, before the call gives
    /// the slot back and comes again. Default 5 s: long enough to keep the attempts of waiting calls rare, and short
    /// enough that the calls of other providers get a slot soon.
    pub provider_wait: Duration,
    /// The time for which a failed model of a chain gets no calls, before one call tries it again. Default 60 s,
    /// because most outages of a provider take minutes.
    pub circuit: Duration,
    /// Tries without a reply that a step of an agent keeps with their reasons. Default 20: a call counts at most six paid
    /// tries, and a step of a provider that is over its limits seldom waits through more. A try takes some 300 bytes.
    pub kept_tries: u32,
    /// The calls of a probe for one unknown outcome. Default 3: a server that restarts answers the second or third.
    pub probe_tries: u32,
    /// The time limit of a call of a probe. Default 5 s, because the turn waits, and because about 8 s are left of the
    /// activity after a time-out of the tool.
    pub probe_timeout: Duration,
    /// The questions that a call of a tool may ask a person. Default 10, as in the SDKs of MCP: forms have fewer pages.
    pub max_questions: u32,
    /// The time to wait for the answer to a question of a tool. Default 72 h, as for an approval.
    pub question_timeout: Duration,
    /// The pause after a step's first refused call. Only tests change the pause.
    pub refusal_pause: Duration,
    /// Activities, saves included, before a fresh worker of the SDK replaces the current one. Default 10,000: until
    /// then, the SDK keeps about 450 bytes of each activity, 4.5 MB in total.
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
            provider_wait: Duration::from_secs(5),
            circuit: Duration::from_mins(1),
            kept_tries: 20,
            probe_tries: 3,
            probe_timeout: Duration::from_secs(5),
            max_questions: 10,
            question_timeout: Duration::from_hours(72),
            refusal_pause: Duration::from_secs(1),
            renew_after_activities: 10_000,
        }
    }
}

impl WorkerLimits {
    /// Returns the limits of the calls that wait for a provider.
    pub fn provider_waits(&self) -> WaitLimits {
        WaitLimits {
            longest: self.provider_wait,
            calls: (self.max_concurrent_activities / WAITING_PART).clamp(1, MAX_WAITING),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WorkerTable {
    max_concurrent_activities: Option<Written<Slots>>,
    max_concurrent_workflow_tasks: Option<Written<Slots>>,
    max_cached_workflows: Option<Written<Slots>>,
    graceful_shutdown: Option<Written<Time<SECOND, HOUR>>>,
    wait_for_peer: Option<Written<Time<0, HOUR>>>,
    lease: Option<Written<Lease>>,
    provider_wait: Option<Written<ProviderWait>>,
    circuit: Option<Written<Time<0, HOUR>>>,
    kept_tries: Option<Written<Number<1, 50>>>,
    probe_tries: Option<Written<Number<1, 10>>>,
    probe_timeout: Option<Written<Time<SECOND, MINUTE>>>,
    max_questions: Option<Written<Number<0, 100>>>,
    question_timeout: Option<Written<Time<SECOND, { 31 * DAY }>>>,
    renew_after_activities: Option<Written<Renewals>>,
}

impl WorkerTable {
    pub(super) fn check(&self, check: &mut Checker<'_>) -> WorkerLimits {
        let default = WorkerLimits::default();
        WorkerLimits {
            max_concurrent_activities: check.value_or(
                &self.max_concurrent_activities,
                default.max_concurrent_activities,
            ),
            max_concurrent_workflow_tasks: check.value_or(
                &self.max_concurrent_workflow_tasks,
                default.max_concurrent_workflow_tasks,
            ),
            max_cached_workflows: check
                .value_or(&self.max_cached_workflows, default.max_cached_workflows),
            graceful_shutdown: check.value_or(&self.graceful_shutdown, default.graceful_shutdown),
            wait_for_peer: check.value_or(&self.wait_for_peer, default.wait_for_peer),
            lease: check.value_or(&self.lease, default.lease),
            provider_wait: check.value_or(&self.provider_wait, default.provider_wait),
            circuit: check.value_or(&self.circuit, default.circuit),
            kept_tries: check.value_or(&self.kept_tries, default.kept_tries),
            probe_tries: check.value_or(&self.probe_tries, default.probe_tries),
            probe_timeout: check.value_or(&self.probe_timeout, default.probe_timeout),
            max_questions: check.value_or(&self.max_questions, default.max_questions),
            question_timeout: check.value_or(&self.question_timeout, default.question_timeout),
            refusal_pause: default.refusal_pause,
            renew_after_activities: check
                .value_or(&self.renew_after_activities, default.renew_after_activities),
        }
    }
}
