//! The client of Everturn for programs in Rust.
//!
//! - [`state`]: frames in, what a person is shown out. No I/O.
//! - [`sse`]: bytes in, server-sent events out. No I/O.
//! - [`reconnect`]: what to do after a connection. No I/O.
//!
//! What these three do is the same in every client of Everturn: `clients/transcripts/` describes it and tests it.

pub mod reconnect;
pub mod sse;
pub mod state;
