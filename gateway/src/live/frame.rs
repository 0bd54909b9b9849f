//! What a reader of a conversation receives.

use everturn_proto::event::Event;
use everturn_stream::{OpenText, Piece, TextKey};

/// One thing that a reader of a conversation receives.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveFrame {
    /// A persisted event.
    Event(Event),
    /// A text as it is now; replaces what the reader had for its key.
    TextStart(OpenText),
    /// More of a text.
    TextDelta(Piece),
    /// The model has finished a text. Its event follows.
    TextEnd {
        /// The message whose turn it is.
        message_id: String,
        /// Which text.
        key: TextKey,
        /// Which try of the step.
        generation: u32,
    },
}

impl LiveFrame {
    /// The end of a text that the model has finished.
    pub(super) fn end_of(text: &OpenText) -> Self {
        Self::TextEnd {
            message_id: text.message_id.clone(),
            key: text.key.clone(),
            generation: text.generation,
        }
    }

    /// The message whose turn it belongs to.
    pub fn message_id(&self) -> &str {
        match self {
            Self::Event(event) => &event.message_id,
            Self::TextStart(text) => &text.message_id,
            Self::TextDelta(piece) => &piece.message_id,
            Self::TextEnd { message_id, .. } => message_id,
        }
    }
}
