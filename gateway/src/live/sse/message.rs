//! One server-sent event as text.

use std::fmt::Write as _;

use serde::Serialize;

use crate::live::cursor::Cursor;

/// The names in `event:` of the frames that are not persisted events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFrame {
    /// The second frame of a chat, after `replay`: the conversation and the message's id.
    Conversation,
    /// The first frame of a stream: the position where the replay begins.
    Replay,
    /// The reader's cursor comes from another log. The frame names the event where the reader begins anew.
    Reset,
    /// A text in its current state.
    TextStart,
    /// The next piece of a text.
    TextDelta,
    /// The model has finished a text.
    TextEnd,
    /// A call of the model waits for its provider.
    ModelWaiting,
    /// A tool works on.
    ToolProgress,
    /// The gateway stops, and the reader should connect again.
    Reconnect,
    /// The stream ends, and the reader has no reason to connect again.
    End,
}

impl StreamFrame {
    /// All names.
    pub const ALL: [Self; 10] = [
        Self::Conversation,
        Self::Replay,
        Self::Reset,
        Self::TextStart,
        Self::TextDelta,
        Self::TextEnd,
        Self::ModelWaiting,
        Self::ToolProgress,
        Self::Reconnect,
        Self::End,
    ];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::Replay => "replay",
            Self::Reset => "reset",
            Self::TextStart => "text_start",
            Self::TextDelta => "text_delta",
            Self::TextEnd => "text_end",
            Self::ModelWaiting => "model_waiting",
            Self::ToolProgress => "tool_progress",
            Self::Reconnect => "reconnect",
            Self::End => "end",
        }
    }
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "a frame cannot be written as JSON");
        "{}".to_owned()
    })
}

/// Returns a server-sent event with the name in `event:` and the data in `data:`. With an `id:`, a reader may come back
/// with the id as its cursor.
pub(super) fn message(id: Option<Cursor>, name: &str, data: &str) -> String {
    let mut frame = String::with_capacity(data.len() + 64);
    if let Some(id) = id {
        let _ = writeln!(frame, "id: {id}");
    }
    let _ = writeln!(frame, "event: {}", name.replace(['\r', '\n'], " "));
    // Raw JSON may hold line breaks between its tokens. Every line gets its own `data:`, and the reader joins the lines
    // again. Line breaks are rare, and a search for bytes is quicker than a split at characters.
    if data.bytes().any(|byte| matches!(byte, b'\r' | b'\n')) {
        for line in data.split(['\r', '\n']) {
            let _ = writeln!(frame, "data: {line}");
        }
    } else {
        frame.push_str("data: ");
        frame.push_str(data);
        frame.push('\n');
    }
    frame.push('\n');
    frame
}
