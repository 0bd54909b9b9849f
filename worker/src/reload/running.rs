//! The parts of a running process that get changed agents and tools.

use std::sync::{Arc, OnceLock};

use everturn_activities::{AgentActivities, KnownAgents};
use everturn_config::Config;
use everturn_gateway::OfferedAgents;
use everturn_store::{AuditTrail, ToolResults};
use everturn_tools::{ToolRegistry, builtin::ReadResult, typed};

use crate::audit::tell_configuration;

/// The parts of a running process: each role enters its part after its start.
pub struct Running {
    worker: Option<OnceLock<RunningWorker>>,
    gateway: Option<OnceLock<RunningGateway>>,
}

/// A worker.
pub struct RunningWorker {
    /// The activities.
    pub activities: AgentActivities,
    /// The tool results for the tool that reads whole results.
    pub results: Arc<dyn ToolResults>,
    /// The audit trail.
    pub trail: Arc<dyn AuditTrail>,
}

/// A gateway.
pub struct RunningGateway {
    /// The agents for callers.
    pub agents: OfferedAgents,
    /// The audit trail.
    pub trail: Arc<dyn AuditTrail>,
}

impl Running {
    /// The parts of a process with a worker alone.
    pub fn worker() -> Arc<Self> {
        Arc::new(Self {
            worker: Some(OnceLock::new()),
            gateway: None,
        })
    }

    /// The parts of a process with a gateway alone.
    pub fn gateway() -> Arc<Self> {
        Arc::new(Self {
            worker: None,
            gateway: Some(OnceLock::new()),
        })
    }

    /// The parts of a process with both roles.
    pub fn both() -> Arc<Self> {
        Arc::new(Self {
            worker: Some(OnceLock::new()),
            gateway: Some(OnceLock::new()),
        })
    }

    /// Enters the worker.
    pub fn enter_worker(&self, worker: RunningWorker) {
        if let Some(place) = &self.worker {
            // A process has one worker.
            let _entered = place.set(worker);
        }
    }

    /// Enters the gateway.
    pub fn enter_gateway(&self, gateway: RunningGateway) {
        if let Some(place) = &self.gateway {
            // A process has one gateway.
            let _entered = place.set(gateway);
        }
    }

    /// True after each role of the process has entered its part.
    pub(super) fn is_complete(&self) -> bool {
        let worker = self.worker.as_ref();
        let gateway = self.gateway.as_ref();
        worker.is_none_or(|worker| worker.get().is_some())
            && gateway.is_none_or(|gateway| gateway.get().is_some())
    }

    /// Gives the parts changed agents and tools. The worker comes first, because the gateway of a process must not offer
    /// an agent that the worker does not know yet. After an error, nothing has changed.
    pub(super) fn give(&self, config: &Config, tools: &ToolRegistry) -> anyhow::Result<()> {
        if let Some(worker) = self.worker.as_ref().and_then(OnceLock::get) {
            let agents = KnownAgents::of(config.agents.clone())?;
            let tools = with_results(tools.clone(), Arc::clone(&worker.results))?;
            worker.activities.replace(agents, tools);
            tell_configuration(Arc::clone(&worker.trail), "worker", config);
        }
        if let Some(gateway) = self.gateway.as_ref().and_then(OnceLock::get) {
            gateway.agents.replace(config.gateway.agents.clone());
            tell_configuration(Arc::clone(&gateway.trail), "gateway", config);
        }
        Ok(())
    }
}

/// Returns the tools, with the tool that reads whole results.
pub fn with_results(
    mut tools: ToolRegistry,
    results: Arc<dyn ToolResults>,
) -> anyhow::Result<Arc<ToolRegistry>> {
    tools.register(typed(ReadResult::new(results)))?;
    Ok(Arc::new(tools))
}
