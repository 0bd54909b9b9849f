//! The tests of the gateway, in one binary: each one more would be linked with all that the gateway depends on.

#![allow(clippy::unwrap_used, unreachable_pub)]

mod auth;
mod connections;
mod cursor;
mod generations;
mod hub;
mod idle;
mod limits;
mod lost_workers;
mod mcp;
mod memory_share;
mod openapi;
mod reconciler;
mod redis;
mod rest;
mod sqlite;
mod sse;
mod support;
mod tail;
mod turns;
mod watcher;
