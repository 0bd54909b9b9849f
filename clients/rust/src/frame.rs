//! A frame of a conversation's stream.

use serde_json::Value;

use crate::sse::Message;

/// A frame of a conversation's stream.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The frame's type: the type of an event or of a text frame, or `replay`.
    pub event: String,
    /// The sequence number of a persisted event; deltas have none.
    pub id: Option<u32>,
    /// The cursor for reconnecting after the event; deltas have none.
    pub cursor: Option<String>,
    /// The value of `data:`.
    pub data: Value,
}

impl Frame {
    /// Reads a message of the stream; `None` for a message that is not a frame.
    pub(crate) fn of(message: Message) -> Option<Self> {
        let data: Value = serde_json::from_str(&message.data).ok()?;
        // The type comes from the data, because browsers reserve the name `error` and the frame of an event `error` has
        // another name.
        let event = data["type"].as_str()?.to_owned();
        let id = data["sequence_number"].as_u64();
        let id = id.and_then(|id| u32::try_from(id).ok());
        let cursor = message
            .id
            .filter(|cursor| id.is_some() && !cursor.is_empty());
        Some(Self {
            event,
            id,
            cursor,
            data,
        })
    }
}
