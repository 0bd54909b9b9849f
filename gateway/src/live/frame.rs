//! What a reader of a conversation receives.

use everturn_proto::event::Event;
use everturn_stream::{OpenText, Piece, TextKey};

/// One thing that a reader of a conversation receives.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveFrame {
    /// The log is not the one that the reader has read: what it has from this number on counts no more.
    Reset {
        /// The first event that comes.
        from_sequence: u32,
    },
    /// A persisted event.
    Event(Event),
    /// A text as it is now. It replaces what the reader had for the text's key.
    TextStart(OpenText),
    /// The next piece of a text.
    TextDelta(Piece),
    /// The model has finished a text. Its event follows.
    TextEnd {
        /// The message whose turn it is.
        message_id: String,
        /// The key of the text.
        key: TextKey,
        /// The generation that the text was written in.
        generation: u32,
    },
}

impl LiveFrame {
    /// Makes the frame that ends a text, because the model has finished it.
    pub(super) fn end_of(text: &OpenText) -> Self {
        Self::TextEnd {
            message_id: text.message_id.clone(),
            key: text.key.clone(),
            generation: text.generation,
        }
    }

    /// Returns the message whose turn the frame belongs to; empty for a frame that is about all turns.
    pub fn message_id(&self) -> &str {
        match self {
            Self::Reset { .. } => "",
            Self::Event(event) => &event.message_id,
            Self::TextStart(text) => &text.message_id,
            Self::TextDelta(piece) => &piece.message_id,
            Self::TextEnd { message_id, .. } => message_id,
        }
    }
}
