//! Frames as server-sent events.
//!
//! - `frames`: events and texts for a conversation's readers
//! - `control`: frames about the stream itself
//! - `lists`: frames for readers of a conversation list
//! - `message`: one server-sent event as text
//!
//! Only persisted events carry an `id:`, their cursor. Therefore a browser's `Last-Event-ID` is always a cursor
//! (invariant 8, a cursor never expires).

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
    frames::{ModelWaitingFrame, TextFrame, ToolProgressFrame},
    lists::{
        ConversationChangedFrame, ConversationRemovedFrame, ListFrame, conversation_changed,
        conversation_removed, list,
    },
};
