//! Support for tests of the PostgreSQL back end: a server of their own, and a proxy that can watch and cut connections
//! to it.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

pub mod line;
pub mod postgres;
