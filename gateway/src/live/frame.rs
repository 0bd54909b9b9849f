//! The frames that a reader of a conversation receives.

use everturn_proto::event::Event;
use everturn_stream::{Notice, OpenText, Piece, TextKey};

/// A frame for a reader of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveFrame {
    /// The conversation's log differs from the log of the reader's cursor. Events and texts from `from_sequence` on are
    /// void for the reader.
    Reset {
        /// The sequence number of the first event after the reset.
        from_sequence: u32,
    },
    /// A persisted event.
    Event(Event),
    /// The text up to now. The text replaces the reader's earlier text with an equal key.
    TextStart(OpenText),
    /// The next piece of a text.
    TextDelta(Piece),
    /// The model has finished a text. The text's event follows.
    TextEnd {
        /// The message of the text's turn.
        message_id: String,
        /// The key of the text.
        key: TextKey,
        /// The generation of the text.
        generation: u32,
    },
    /// News that no event repeats: a call that waits for its provider, or the progress of a tool.
    Notice(Notice),
}

impl LiveFrame {
    /// Makes the frame for the end of a text, after the model has finished the text.
    pub(super) fn end_of(text: &OpenText) -> Self {
        Self::TextEnd {
            message_id: text.message_id.clone(),
            key: text.key.clone(),
            generation: text.generation,
        }
    }

    /// Returns the message of the frame's turn; empty for a frame about all turns.
    pub fn message_id(&self) -> &str {
        match self {
            Self::Reset { .. } => "",
            Self::Event(event) => &event.message_id,
            Self::TextStart(text) => &text.message_id,
            Self::TextDelta(piece) => &piece.message_id,
            Self::TextEnd { message_id, .. } => message_id,
            Self::Notice(notice) => notice.message_id(),
        }
    }
}
