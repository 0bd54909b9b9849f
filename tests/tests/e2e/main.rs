//! End-to-end tests: real processes on the real Temporal server, with a scripted model.
//!
//! They are one binary, so that all of them share one Temporal server. The folder of a test says its backends
//! (`tests/src/backends.rs`) and which command runs it; CONTRIBUTING.md, "Where a test belongs", has the rules.
//!
//! - `both`: behaviour that could differ between the backends. `make test` runs each test twice.
//! - `embedded`: behaviour that does not depend on the backends. `make test` runs each test once, on the cheaper ones.
//! - `production`: behaviour of PostgreSQL, Redis, or several processes of a role.
//! - `verify`: long tests that only `make verify` runs.

#![allow(clippy::unwrap_used)]

mod both;
mod embedded;
mod production;
mod verify;
