//! Frames as server-sent events.
//!
//! - `frames`: what a conversation's readers get: events and texts
//! - `control`: what the stream says about itself
//! - `lists`: what readers of a list of conversations get
//! - `message`: one server-sent event as text
//!
//! Only persisted events carry an `id:`, their sequence number: what a browser sends back as `Last-Event-ID` is always
//! a cursor (invariant 8, a cursor never expires).

mod control;
mod frames;
mod lists;
mod message;

pub use self::{
    control::StreamEnd,
    frames::{RenderedFrame, event_name},
    message::StreamFrame,
};
pub(crate) use self::{
    control::{
        ChatFrame, EndFrame, HEARTBEAT, ReconnectFrame, ReplayFrame, ResetFrame, conversation, end,
        reconnect, replay, retry,
    },
    frames::TextFrame,
    lists::{
        ConversationChangedFrame, ConversationRemovedFrame, ListFrame, conversation_changed,
        conversation_removed, list,
    },
};
