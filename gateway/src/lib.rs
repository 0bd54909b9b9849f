//! The gateway: REST and SSE in front of the store, the stream and the engine.
//!
//! `http` is above `live`, and below both is what both need. A module names only those below it, which a test of the
//! architecture checks.
//!
//! - [`http`]: routes, extraction, problems, the document, who may do what
//! - [`live`]: what readers of a conversation get: feed, hub, tail, watcher, frames, timeline; and readers of a list
//! - [`lost_workers`], [`reconciler`]: what is left of dead workers, and turns that have stalled
//! - [`turns`]: the port to the engine, and its Temporal implementation
//! - `limits`: what one tenant may use
//! - [`config`]: the settings and their defaults
//! - [`connections`]: what happens before a request is whole, and before it is known who sends it
//! - `ports`: what the gateway is connected to
//! - `deliveries`: what readers were shown, for traces
//! - `listed`: conversations as answers and streams show them; `audited`: entries of the audit trail
//! - `schema`, `fields`: small helpers
//!
//! Must not be here: writing events (only workers do), models, tools, SQL.

mod audited;
pub mod config;
pub mod connections;
mod deliveries;
mod fields;
pub mod http;
mod limits;
mod listed;
pub mod live;
pub mod lost_workers;
mod ports;
pub mod reconciler;
mod schema;
mod server;
pub mod turns;

pub use audited::AuditEntryBody;
pub use config::{AuditConfig, AuthConfig, GatewayConfig, OwnerLimits, RequestRate, TenantLimits};
pub use deliveries::{DeliveredEvent, Deliveries};
pub use http::{
    auth, problem,
    routes::{openapi_document, ready, router},
    state::GatewayState,
};
pub use lost_workers::LostWorkerWatch;
pub use ports::Ports;
pub use reconciler::Reconciler;
pub use server::serve;
pub use turns::{TemporalTurns, TurnStarter};
