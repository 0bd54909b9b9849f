//! Makes the error of a model call from a provider's answer, or from its silence. The error's code names the remedy.
//!
//! - [`own`]: errors that Everturn sees itself, like a cut stream
//! - [`answer`]: the error of an HTTP status and of an error within a stream, with the message for readers
//! - [`frame`]: tells an error within a stream from a part of a reply
//! - [`report`]: the words, names and waits in an error of any shape ([`shape`]); [`keys`] lists the keys
//! - [`table`], [`too_long`]: the words by which providers report each kind of error
//! - [`kinds`]: the kind of an error
//! - [`wait`]: times to wait in words
//! - [`text`]: a provider's text for a message
//!
//! A message never has a key: Everturn's texts are written without the key, and `Endpoint::without_secrets` removes the
//! secrets that a provider repeats. Must not be here: code for one wire.

mod answer;
mod frame;
mod keys;
mod kinds;
mod own;
mod report;
mod shape;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod too_long;
mod wait;

pub(super) use answer::{from_body, from_status, not_a_stream, unreadable_frame};
pub(super) use frame::is_error;
pub(super) use own::{
    Call, broken_off, content_policy, empty, from_reqwest, stream_cut, unknown_encoding,
    unknown_provider, unreadable,
};
pub(super) use text::short;
