//! The settings of a worker for its activities.

use std::{collections::BTreeMap, time::Duration};

use everturn_models::WaitLimits;
use everturn_proto::words::AnswersFrom;
use everturn_store::DayBudget;

use crate::{known_agents::KnownAgents, probe::ProbeLimits, questions::QuestionLimits};

/// The settings of a worker for its activities.
#[derive(Debug)]
pub struct Settings {
    /// The agents in the worker's configuration.
    pub agents: KnownAgents,
    /// The daily budgets of tenants for models.
    pub tenant_budgets: TenantBudgets,
    /// The way by which answers to approvals must come.
    pub approval_answers: AnswersFrom,
    /// The task queues for turns that start on this worker.
    pub queues: TurnQueues,
    /// The time for which an attempt is left to other workers when this worker lacks an agent, a tool or a provider.
    pub wait_for_peer: Duration,
    /// The time for which a failed model of a chain gets no calls.
    pub circuit: Duration,
    /// The limits of the LLM calls that wait in their slots for the limits of a provider.
    pub provider_waits: WaitLimits,
    /// The settings for calls of models without a reply.
    pub retries: Retries,
    /// The limits of asking a probe.
    pub probes: ProbeLimits,
    /// The limits of the questions of tools to people.
    pub questions: QuestionLimits,
    /// The most tools that run at a time.
    pub max_tools: usize,
}

/// The settings for calls of models without a reply.
#[derive(Debug, Clone, Copy)]
pub struct Retries {
    /// The tries without a reply that a step keeps with their reasons.
    pub kept_tries: u32,
    /// The pause after a step's first refused call. The pause doubles with each refused call, up to 30 times its length.
    pub refusal_pause: Duration,
}

/// The task queues for the activities of a turn. Without a queue, the activities run on the workflow's queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnQueues {
    /// The queue of LLM calls.
    pub models: Option<String>,
    /// The queue of tools.
    pub tools: Option<String>,
}

/// The budgets of tenants for models, per day (UTC).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantBudgets {
    /// The budget of a tenant without its own budget.
    pub each: DayBudget,
    /// The budgets of single tenants.
    pub own: BTreeMap<String, DayBudget>,
}

impl TenantBudgets {
    /// Returns the budget of a tenant.
    pub fn of(&self, tenant_id: &str) -> DayBudget {
        self.own.get(tenant_id).copied().unwrap_or(self.each)
    }
}
