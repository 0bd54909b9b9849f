//! Live delivery: the event log and the live texts for a conversation's readers, and list changes for the readers of a
//! conversation list. The module does not know HTTP.
//!
//! From the top down:
//!
//! - `feed`: the response body of one reader
//! - `hub`: one tail for all readers of a conversation
//! - `tail`: joins the event replay with the texts in progress (invariant 8, a cursor never expires)
//! - `reader`: one reader, which first replays events from its cursor and then receives the tail's frames
//! - `broadcasts`: the broadcasts of the running tails
//! - `broadcast`: the frames shown by the tail, and the subscribed readers
//! - `queue`: the bounded queue of one reader's untaken frames
//! - `open_texts`, `seals`, `generations`: the open texts, the texts replaced by an event, and the texts replaced by a
//!   newer attempt of their step
//! - `newest`: the bounded memory of seals and generations
//! - `watcher`: one query for all tails, which finds events after a lost announcement
//! - `cursor`: a reader's position in the event log
//! - `log`: the event log from a cursor, page by page
//! - `sse`: frames as server-sent events
//! - `frame`, `end`: a reader's frames, and the reasons for a reader's end
//! - `lists`: the stream of a list of conversations
//! - `timeline`: makes timeline items from events, without I/O
//!
//! Must not be here: requests and responses, and access checks.

mod broadcast;
mod broadcasts;
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
