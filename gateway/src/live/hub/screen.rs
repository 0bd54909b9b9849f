//! The open texts on the screen of whoever has seen every frame so far.

use std::sync::Arc;

use everturn_stream::OpenText;

use crate::live::{
    sse::Rendered,
    tail::{Frame, MAX_SHOWN, Seals, text_end},
};

/// What a reader that sits down now must be shown. As the tail remembers what it has shown, so does this.
#[derive(Debug, Default)]
pub(super) struct Screen {
    seals: Seals,
    /// By their beginning.
    texts: Vec<Text>,
}

#[derive(Debug)]
struct Text {
    open: OpenText,
    /// Its `text_start` as it is now: many readers may sit down between two pieces.
    rendered: Option<Arc<Rendered>>,
}

impl Screen {
    /// Takes in a frame that every reader gets.
    pub(super) fn take(&mut self, frame: &Frame) {
        match frame {
            Frame::Event(event) => {
                self.seals.note(event);
                self.texts.retain(|text| !self.seals.cover(&text.open.key));
            }
            Frame::TextStart(open) => {
                let text = Text {
                    open: open.clone(),
                    rendered: None,
                };
                if let Some(held) = self.texts.iter_mut().find(|held| held.open.key == open.key) {
                    *held = text;
                    return;
                }
                if self.texts.len() >= MAX_SHOWN {
                    self.texts.remove(0);
                }
                self.texts.push(text);
            }
            Frame::TextDelta(piece) => {
                self.change(&piece.key, |open| open.text.push_str(&piece.text))
            }
            Frame::TextEnd { key, .. } => self.change(key, |open| open.is_ended = true),
        }
    }

    /// The frames that show it.
    pub(super) fn frames(&mut self, conversation_id: &str) -> Vec<Arc<Rendered>> {
        let mut frames = Vec::new();
        for text in &mut self.texts {
            let open = &text.open;
            let start = || {
                Arc::new(Rendered::new(
                    conversation_id,
                    Frame::TextStart(open.clone()),
                ))
            };
            frames.push(Arc::clone(text.rendered.get_or_insert_with(start)));
            if open.is_ended {
                let end = text_end(&open.message_id, &open.key, open.generation);
                frames.push(Arc::new(Rendered::new(conversation_id, end)));
            }
        }
        frames
    }

    fn change(&mut self, key: &everturn_stream::TextKey, change: impl FnOnce(&mut OpenText)) {
        if let Some(text) = self.texts.iter_mut().find(|text| text.open.key == *key) {
            change(&mut text.open);
            text.rendered = None;
        }
    }
}
