//! End-to-end tests: real processes on the real Temporal server, with a scripted model.
//!
//! One binary, so that all of them share one Temporal server.

#![allow(clippy::unwrap_used)]

mod bad_input;
mod cli;
mod cost;
mod crash;
mod dev;
mod faults;
mod operations;
mod races;
mod resume;
mod subagents;
mod turn;
