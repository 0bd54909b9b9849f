//! One server-sent event as text.

use std::fmt::Write as _;

use serde::Serialize;

/// What `event:` says of a frame that is no persisted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFrame {
    /// The first frame of a chat: where the message went.
    Conversation,
    /// The first frame of a stream: where the replay begins.
    Replay,
    /// A text as it is now.
    TextStart,
    /// More of a text.
    TextDelta,
    /// The model has finished a text.
    TextEnd,
    /// The gateway stops: come back.
    Reconnect,
    /// There is nothing to come back for.
    End,
}

impl StreamFrame {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Conversation,
        Self::Replay,
        Self::TextStart,
        Self::TextDelta,
        Self::TextEnd,
        Self::Reconnect,
        Self::End,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::Replay => "replay",
            Self::TextStart => "text_start",
            Self::TextDelta => "text_delta",
            Self::TextEnd => "text_end",
            Self::Reconnect => "reconnect",
            Self::End => "end",
        }
    }
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "a frame has no JSON form");
        "{}".to_owned()
    })
}

/// A server-sent event with this `event:` and this `data:`, and an `id:` if it is one to come back with.
pub(super) fn message(id: Option<u32>, name: &str, data: &str) -> String {
    let mut frame = String::with_capacity(data.len() + 64);
    if let Some(id) = id {
        let _ = writeln!(frame, "id: {id}");
    }
    let _ = writeln!(frame, "event: {}", name.replace(['\r', '\n'], " "));
    // Raw JSON may hold line breaks between its tokens; the reader joins the lines again.
    for line in data.split(['\r', '\n']) {
        let _ = writeln!(frame, "data: {line}");
    }
    frame.push('\n');
    frame
}
