//! End-to-end tests: real processes on the real Temporal server, with a scripted model.
//!
//! One binary, so that all of them share one Temporal server.

#![allow(clippy::unwrap_used)]

mod approvals;
mod approvals_survive;
mod bad_input;
mod cli;
mod client_tools;
mod cost;
mod crash;
mod dev;
mod faults;
mod operations;
mod races;
mod resume;
mod turn;
