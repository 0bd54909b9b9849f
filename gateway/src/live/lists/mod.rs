//! The stream of a list: what a caller's newest conversations are, and each change of them.
//!
//! - `feed`: the body of one reader's response
//! - `hub`: one tail for all readers of a list, which reads the list again when something may have changed
//! - `snapshot`: the list as it was read, and the frames that lead from one such list to a later one
//!
//! The store alone says what a list is, so that nothing is lost with the stream or with another gateway. A reader has no
//! queue: it keeps the list that it has shown last, and is told how the newest one differs. So a reader that is slow gets
//! fewer frames, and a text that is being written none.
//!
//! Must not be here: events and texts of a conversation.

mod feed;
mod hub;
mod snapshot;

pub use self::{
    feed::ListFeed,
    hub::{ListHub, ListReader},
};
