//! The gateway: REST and SSE in front of the store, the stream and the engine.
//!
//! `http` is above `live`, and the common helpers are below `live`. A module uses only modules below itself, and a test
//! of the architecture checks the order.
//!
//! - [`http`]: routes, extraction, problems, the OpenAPI document, authorization
//! - [`live`]: the streams of a conversation (feed, hub, tail, watcher, frames, timeline) and of a list
//! - [`lost_workers`], [`reconciler`]: repair after dead workers, and for stalled turns
//! - [`turns`]: the port to the engine, and its Temporal implementation
//! - `limits`: quotas of a tenant
//! - [`config`]: the settings and their defaults
//! - [`connections`]: protection of connections before a request is complete and its caller is known
//! - `ports`: the gateway's connections to the store, the stream and the engine
//! - `consents`: the port to the consents of people to the use of tool servers
//! - `deliveries`: reports of events that readers received, for traces
//! - `listed`: conversations as answers and streams show them; `audited`: entries of the audit trail; `failed`: failures
//! - `backlog`: metrics of the work that waits; `removals`: the rows of large conversations that were removed
//! - `schema`, `fields`: small helpers; `sync`: the locks and the clock of small files
//!
//! Must not be here: writing events (only workers write events), models, tools, SQL.

mod audited;
mod backlog;
pub mod config;
pub mod connections;
mod consents;
mod deliveries;
mod failed;
mod fields;
pub mod http;
mod limits;
mod listed;
pub mod live;
pub mod lost_workers;
mod ports;
pub mod reconciler;
mod removals;
mod schema;
mod server;
mod sync;
pub mod turns;

pub use audited::AuditEntryBody;
pub use backlog::BacklogWatch;
pub use config::{
    AuditConfig, AuthConfig, GatewayConfig, OfferedAgent, OfferedAgents, OwnerLimits, RequestRate,
    TenantLimits,
};
pub use consents::{ConsentRefusal, ToolConsents};
pub use deliveries::{DeliveredEvent, Deliveries};
pub use failed::{FailureBody, FailureCountBody};
pub use http::{
    auth, problem,
    routes::{openapi_document, ready, router},
    state::GatewayState,
};
pub use lost_workers::LostWorkerWatch;
pub use ports::Ports;
pub use reconciler::Reconciler;
pub use removals::Removals;
pub use server::serve;
pub use turns::{TemporalTurns, TurnStarter};
