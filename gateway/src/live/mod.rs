//! The live side: what the readers of a conversation get, from the event log and from the stream. It knows no HTTP.
//!
//! From the top down:
//!
//! - `feed`: one reader's bytes
//! - `hub`: one tail for all readers of a conversation
//! - `tail`: the seam between replay and live (invariant 8, "a cursor never expires")
//! - `reader`: one reader's way from its cursor to what the tail shows to all
//! - `broadcast`: what the tail has shown so far, and the readers who get the rest
//! - `queue`: what one reader has not taken yet, bounded
//! - `open_texts`, `seals`: which texts are open, and which an event has replaced
//! - `watcher`: one look at the store for all tails, for what announcements missed
//! - `log`: the event log from a cursor, page by page
//! - `sse`: frames as server-sent events
//! - `frame`, `end`: what a reader receives, and why it gets no more
//! - `timeline`: pure; events to timeline items
//!
//! Must not be here: requests and responses, and who may read what.

mod broadcast;
mod end;
mod feed;
mod frame;
mod hub;
mod log;
mod open_texts;
mod queue;
mod reader;
mod seals;
pub mod sse;
mod tail;
pub mod timeline;
mod watcher;

pub use self::{
    end::ReaderEnd,
    feed::Feed,
    frame::LiveFrame,
    hub::LiveHub,
    reader::LiveReader,
    watcher::{News, WatchedConversation, Watcher},
};
