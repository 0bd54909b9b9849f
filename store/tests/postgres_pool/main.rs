//! Checks the pool of connections: that the calls of one conversation leave connections to the others.

#![allow(clippy::unwrap_used)]

mod busy;
#[path = "../conformance/fixture.rs"]
#[allow(dead_code, unreachable_pub)]
mod fixture;
#[path = "../support/mod.rs"]
mod support;
