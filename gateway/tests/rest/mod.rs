//! The endpoints over HTTP, except the streams.

mod agents;
mod blobs;
mod calls;
mod conversations;
mod documentation;
mod events;
mod executions;
mod messages;
mod names;
mod outcomes;
mod outside;
mod problems;
mod tool_results;
