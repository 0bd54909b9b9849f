//! Checks what PostgreSQL is asked to do: the round trips of each call, the bytes of an observe, and the plans of the hot
//! queries at 1,000,000 events.

#![allow(clippy::unwrap_used)]

mod costs;
mod explained;
mod failures;
mod filled;
#[path = "../conformance/fixture.rs"]
#[allow(dead_code, unreachable_pub)]
mod fixture;
mod heap_only;
mod outcomes;
mod plans;
mod round_trips;
mod step_results;
#[path = "../support/mod.rs"]
mod support;
mod waiting;
