//! The stream of a conversation list: a caller's newest conversations, and every change in the list.
//!
//! - `feed`: the response body of one reader
//! - `hub`: one tail for all readers of a list, which reads the list again after a possible change
//! - `snapshot`: the list at one moment, and the frames that lead from an earlier snapshot to a later snapshot
//!
//! Only the store defines a list, so a failure of the stream or of another gateway loses no change. A reader has no
//! queue: the reader keeps the last shown list, and receives the differences from the newest list. Therefore a slow
//! reader gets fewer frames. Deltas of a text make no list frame.
//!
//! Must not be here: events and texts of a conversation.

mod feed;
mod hub;
mod snapshot;

pub use self::{
    feed::ListFeed,
    hub::{ListHub, ListReader},
};
