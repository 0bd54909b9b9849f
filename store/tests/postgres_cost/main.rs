//! Checks what PostgreSQL is asked to do: the round trips of each call, and the plans of the hot queries at 1,000,000
//! events.

#![allow(clippy::unwrap_used)]

mod explained;
mod filled;
#[path = "../conformance/fixture.rs"]
#[allow(dead_code, unreachable_pub)]
mod fixture;
mod plans;
mod round_trips;
#[path = "../support/mod.rs"]
mod support;
