//! What tests of the PostgreSQL back end stand on: a server of their own, and a line to it that can be watched and cut.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

pub mod line;
pub mod postgres;
