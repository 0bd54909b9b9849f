//! The endpoints over HTTP, except the streams.

#![allow(clippy::unwrap_used)]

mod blobs;
mod conversations;
mod documentation;
mod events;
mod executions;
mod messages;
mod outside;
mod problems;
#[path = "../support/mod.rs"]
mod support;
mod tool_results;
