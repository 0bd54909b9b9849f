//! The roles of a running process, which get changed agents and tools.

use std::sync::{Arc, OnceLock};

use everturn_activities::{AgentActivities, KnownAgents};
use everturn_config::Config;
use everturn_gateway::OfferedAgents;
use everturn_store::{AuditTrail, ToolResults};
use everturn_tools::{
    PersonConsents, ToolRegistry,
    builtin::{FindTools, ReadResult},
    typed,
};

use crate::{audit::tell_configuration, telemetry::Telemetry};

/// The roles of a running process. A role enters after the start of the role.
pub struct Running {
    telemetry: Telemetry,
    worker: Option<OnceLock<RunningWorker>>,
    gateway: Option<OnceLock<RunningGateway>>,
}

struct RunningWorker {
    activities: AgentActivities,
    stored: StoredTools,
    trail: Arc<dyn AuditTrail>,
}

/// The parts of the store that tools use.
#[derive(Clone)]
pub struct StoredTools {
    /// For the tool that reads whole results.
    pub results: Arc<dyn ToolResults>,
    /// For the tools of servers that people consent to; `None` without keys.
    pub consents: Option<Arc<PersonConsents>>,
}

struct RunningGateway {
    agents: OfferedAgents,
    trail: Arc<dyn AuditTrail>,
}

impl Running {
    /// For a process with a worker alone.
    pub fn worker(telemetry: Telemetry) -> Arc<Self> {
        Arc::new(Self {
            telemetry,
            worker: Some(OnceLock::new()),
            gateway: None,
        })
    }

    /// For a process with a gateway alone.
    pub fn gateway(telemetry: Telemetry) -> Arc<Self> {
        Arc::new(Self {
            telemetry,
            worker: None,
            gateway: Some(OnceLock::new()),
        })
    }

    /// For a process with a worker and a gateway.
    pub fn both(telemetry: Telemetry) -> Arc<Self> {
        Arc::new(Self {
            telemetry,
            worker: Some(OnceLock::new()),
            gateway: Some(OnceLock::new()),
        })
    }

    /// Enters the worker.
    pub fn enter_worker(
        &self,
        activities: AgentActivities,
        stored: StoredTools,
        trail: Arc<dyn AuditTrail>,
    ) {
        if let Some(slot) = &self.worker {
            // A process has one worker.
            let _entered = slot.set(RunningWorker {
                activities,
                stored,
                trail,
            });
        }
    }

    /// Enters the gateway, by the list of agents for callers.
    pub fn enter_gateway(&self, agents: OfferedAgents, trail: Arc<dyn AuditTrail>) {
        if let Some(slot) = &self.gateway {
            // A process has one gateway.
            let _entered = slot.set(RunningGateway { agents, trail });
        }
    }

    /// True after every role of the process has entered.
    pub(super) fn is_complete(&self) -> bool {
        let worker = self.worker.as_ref();
        let gateway = self.gateway.as_ref();
        worker.is_none_or(|worker| worker.get().is_some())
            && gateway.is_none_or(|gateway| gateway.get().is_some())
    }

    /// Gives the roles changed agents and tools. The worker comes first, because the gateway of a process must not offer
    /// an agent that the worker does not know yet. After an error, the roles go on with the present agents.
    pub(super) fn give(&self, config: &Config, tools: &ToolRegistry) -> anyhow::Result<()> {
        if let Some(worker) = self.worker.as_ref().and_then(OnceLock::get) {
            let agents =
                KnownAgents::of(config.agents.clone())?.with_responsible(config.responsible());
            let tools = with_stored(tools.clone(), &worker.stored)?;
            worker.activities.replace(agents, tools);
            tell_configuration(Arc::clone(&worker.trail), "worker", config);
            self.telemetry.worker_agents(config);
        }
        if let Some(gateway) = self.gateway.as_ref().and_then(OnceLock::get) {
            gateway.agents.replace(config.gateway.agents.clone());
            tell_configuration(Arc::clone(&gateway.trail), "gateway", config);
            self.telemetry.agents(config);
        }
        Ok(())
    }
}

/// Returns the tools, with the tools that no agent lists, and with the consents of people.
pub fn with_stored(
    mut tools: ToolRegistry,
    stored: &StoredTools,
) -> anyhow::Result<Arc<ToolRegistry>> {
    tools.register(typed(ReadResult::new(Arc::clone(&stored.results))))?;
    tools.register(typed(FindTools))?;
    if let Some(consents) = &stored.consents {
        tools.use_consents(consents);
    }
    Ok(Arc::new(tools))
}
