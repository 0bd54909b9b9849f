//! What the gateway is connected to.

use std::sync::Arc;

use everturn_store::{
    AgentExecutions, AuditTrail, BlobFiles, Conversations, EventReader, Keys, OutsideTools,
    TenantUsage, Tenants, ToolResults,
};
use everturn_stream::{SharedCounts, StreamReader};

use crate::{deliveries::Deliveries, turns::TurnStarter};

/// The gateway's connections to the rest. It reads events and never writes them.
#[derive(Clone)]
pub struct Ports {
    /// The event log.
    pub events: Arc<dyn EventReader>,
    /// Conversations and the messages they accept.
    pub conversations: Arc<dyn Conversations>,
    /// Agent executions: the turns, and the trees of their sub-agents.
    pub executions: Arc<dyn AgentExecutions>,
    /// Tool calls that wait for a person or for the client.
    pub outside: Arc<dyn OutsideTools>,
    /// Whole results of tools.
    pub results: Arc<dyn ToolResults>,
    /// Images and files.
    pub blobs: BlobFiles,
    /// What tenants took of models.
    pub usage: Arc<dyn TenantUsage>,
    /// Who did what.
    pub audit: Arc<dyn AuditTrail>,
    /// What the store knows of tenants.
    pub tenants: Arc<dyn Tenants>,
    /// API keys and sessions.
    pub keys: Arc<dyn Keys>,
    /// The texts that models are writing now.
    pub stream: Arc<dyn StreamReader>,
    /// What this gateway shares its counts by, so that limits hold at all gateways together; `None` where it is alone.
    pub counts: Option<Arc<dyn SharedCounts>>,
    /// Who is told of what readers were shown; `None` without traces.
    pub deliveries: Option<Arc<dyn Deliveries>>,
    /// The engine.
    pub turns: Arc<dyn TurnStarter>,
}
