//! The client of Everturn for programs in Rust.
//!
//! - [`GatewayClient`]: the requests, and the stream of a conversation over as many connections as it takes
//! - [`state`]: frames in, what a person is shown out. No I/O.
//! - [`list`]: the list of conversations from the frames of its stream. No I/O.
//! - [`sse`]: bytes in, server-sent events out. No I/O.
//! - [`reconnect`]: what to do after a connection. No I/O.
//!
//! What the last four do is the same in every client of Everturn: `clients/transcripts/` describes it and tests it.

mod claims;
mod error;
mod following;
mod frame;
mod gateway;
pub mod list;
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
