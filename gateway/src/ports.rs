//! The ports of the gateway: its connections to the store, the stream and the engine.

use std::sync::Arc;

use everturn_store::{
    AgentExecutions, AuditTrail, BlobFiles, Conversations, EventReader, Failures, Keys, LeftOut,
    MessageQueue, OutsideTools, Owners, PastCalls, TenantUsage, Tenants, ToolResults, TurnResults,
};
use everturn_stream::{CancelNews, SharedCounts, StreamReader};

use crate::{consents::ToolConsents, deliveries::Deliveries, turns::TurnStarter};

/// The gateway's connections. The gateway reads events and never writes events.
#[derive(Clone)]
pub struct Ports {
    /// The event log.
    pub events: Arc<dyn EventReader>,
    /// Conversations.
    pub conversations: Arc<dyn Conversations>,
    /// Messages that wait for a turn.
    pub messages: Arc<dyn MessageQueue>,
    /// Agent executions: the turns, and the trees of their sub-agents.
    pub executions: Arc<dyn AgentExecutions>,
    /// The results of turns.
    pub turn_results: Arc<dyn TurnResults>,
    /// Failed agent executions across conversations.
    pub failures: Arc<dyn Failures>,
    /// Past LLM calls.
    pub past_calls: Arc<dyn PastCalls>,
    /// Tool calls that wait for a person or for the client.
    pub outside: Arc<dyn OutsideTools>,
    /// Complete results of tools.
    pub results: Arc<dyn ToolResults>,
    /// The tools that workers leave out of requests.
    pub left_out: Arc<dyn LeftOut>,
    /// Images and files.
    pub blobs: BlobFiles,
    /// The model usage of tenants.
    pub usage: Arc<dyn TenantUsage>,
    /// The audit trail.
    pub audit: Arc<dyn AuditTrail>,
    /// The store's data about tenants.
    pub tenants: Arc<dyn Tenants>,
    /// API keys and sessions.
    pub keys: Arc<dyn Keys>,
    /// Owners with refused credentials.
    pub owners: Arc<dyn Owners>,
    /// The consents of people to the use of tool servers; `None` when no configured server needs a consent.
    pub consents: Option<Arc<dyn ToolConsents>>,
    /// The live texts of running models.
    pub stream: Arc<dyn StreamReader>,
    /// The channel on which workers learn of cancels at once.
    pub cancels: Arc<dyn CancelNews>,
    /// The counts shared with the other gateways, because limits hold across gateways. `None` for a single gateway.
    pub counts: Option<Arc<dyn SharedCounts>>,
    /// The receiver of reports about events that readers received; `None` without traces.
    pub deliveries: Option<Arc<dyn Deliveries>>,
    /// The engine.
    pub turns: Arc<dyn TurnStarter>,
}
