//! Checks the pool of connections: that the calls of one conversation leave connections to the others, that leases do
//! not wait for the pool, what a server must allow, and what a pooler between the store and the server must do.

#![allow(clippy::unwrap_used)]

mod allowed;
mod busy;
#[path = "../conformance/fixture.rs"]
#[allow(dead_code, unreachable_pub)]
mod fixture;
mod leases;
mod pooler;
mod recovery;
#[path = "../support/mod.rs"]
mod support;
