//! The client of Everturn for programs in Rust.
//!
//! - [`GatewayClient`]: the requests, and a conversation's stream across reconnects
//! - [`state`]: makes a displayable state from frames. No I/O.
//! - [`list`]: the list of conversations from the frames of its stream. No I/O.
//! - [`sse`]: makes server-sent events from bytes. No I/O.
//! - [`reconnect`]: decides the next step after a connection. No I/O.
//!
//! The last four modules follow rules shared by every client of Everturn: `clients/transcripts/` describes and tests
//! the rules.

mod claims;
mod error;
mod following;
mod frame;
mod gateway;
pub mod list;
mod listing;
pub mod reconnect;
pub mod sse;
pub mod state;
mod words;

pub use self::{
    claims::Claim,
    error::{ClientError, Problem},
    following::Update,
    frame::Frame,
    gateway::GatewayClient,
    words::{EndReason, OnBusy},
};
