//! The gateway: REST and SSE in front of the store, the stream and the engine (A6, B2–B9).
//!
//! - [`routes`]: the endpoints, one file each
//! - [`tail`]: the seam between replay and live (invariant 8); knows no HTTP
//! - [`hub`]: one tail for all readers of a conversation, and each reader's way to it
//! - [`watcher`]: one look at the store for all tails, for what announcements missed
//! - [`feed`] and [`sse`]: a reader as a response body, and its frames
//! - [`turns`]: the port to the engine, and its Temporal implementation
//! - [`timeline`]: pure; events to timeline items (B9)
//! - [`problem`]: the one place that makes error responses
//! - [`auth`]: who may do what: keys, tokens, browser sessions, origins
//! - [`extract`]: requests to checked values
//! - [`state`], [`config`]: what handlers need, and the limits
//! - [`limits`]: what one tenant may use
//! - [`listener`]: connections, and cutting readers that stall
//!
//! Must not be here: writing events (only workers do), models, tools, SQL.

pub mod auth;
pub mod config;
pub mod extract;
pub mod feed;
mod fields;
pub mod hub;
pub mod limits;
pub mod listener;
pub mod problem;
pub mod routes;
mod server;
pub mod sse;
pub mod state;
pub mod tail;
pub mod timeline;
pub mod turns;
pub mod watcher;

pub use auth::AuthConfig;
pub use config::GatewayConfig;
pub use routes::router;
pub use server::serve;
pub use state::{GatewayState, Ports};
pub use turns::{TemporalTurns, TurnStarter};
