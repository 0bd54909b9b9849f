//! The live side: what the readers of a conversation get, from the event log and from the stream, and what the readers of
//! a list of conversations get. It does not know HTTP.
//!
//! From the top down:
//!
//! - `feed`: the body of one reader's response
//! - `hub`: one tail for all readers of a conversation
//! - `tail`: joins the replay of events with the texts that are written now (invariant 8, a cursor never expires)
//! - `reader`: one reader, which replays from its cursor and then gets what the tail shows to all
//! - `broadcast`: what the tail has shown so far, and the readers who get the rest
//! - `queue`: the frames that one reader has not taken yet, bounded
//! - `open_texts`, `seals`, `generations`: which texts are open, which an event has replaced, and which a newer try of
//!   their step has
//! - `newest`: the bounded memory of seals and generations
//! - `watcher`: one query for all tails, which finds events whose announcement was lost
//! - `cursor`: a reader's place in the event log
//! - `log`: the event log from a cursor, page by page
//! - `sse`: frames as server-sent events
//! - `frame`, `end`: what a reader receives, and why it gets no more
//! - `lists`: the stream of a list of conversations
//! - `timeline`: makes timeline items from events, without I/O
//!
//! Must not be here: requests and responses, and who may read what.

mod broadcast;
mod cursor;
mod end;
mod feed;
mod frame;
mod generations;
mod hub;
pub mod lists;
mod log;
mod newest;
mod open_texts;
mod queue;
mod reader;
mod seals;
pub mod sse;
mod tail;
pub mod timeline;
mod watcher;

pub use self::{
    cursor::Cursor,
    end::ReaderEnd,
    feed::Feed,
    frame::LiveFrame,
    hub::LiveHub,
    reader::LiveReader,
    watcher::{News, WatchedConversation, Watcher},
};
