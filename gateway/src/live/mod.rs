//! The live side: what the readers of a conversation get, from the event log and from the stream. It knows no HTTP.
//!
//! - [`feed`]: one reader's bytes
//! - [`hub`]: one tail for all readers of a conversation, and each reader's way to it
//! - [`sse`]: frames as server-sent events
//! - [`tail`]: the seam between replay and live (invariant 8)
//! - [`watcher`]: one look at the store for all tails, for what announcements missed
//! - [`timeline`]: pure; events to timeline items
//!
//! Must not be here: requests and responses, and who may read what.

pub mod feed;
pub mod hub;
pub mod sse;
pub mod tail;
pub mod timeline;
pub mod watcher;
