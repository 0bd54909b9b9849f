//! The open texts of a conversation, as a reader with all frames sees them. Every conversation has one [`OpenTexts`].
//! The type decides which stream items are new, and gives the current texts to a reader that begins in the middle of a
//! text.

use std::{collections::BTreeMap, sync::Arc};

use everturn_proto::event::Event;
use everturn_stream::{OpenText, Piece, TextKey};

use super::{frame::LiveFrame, generations::Generations, seals::Seals, sse::RenderedFrame};
use crate::limits::memory::Account;

/// The most open texts in memory; the stream has fewer. A text beyond the limit starts anew with its next piece.
const MAX_TEXTS: usize = 256;

/// The open texts of a conversation.
#[derive(Debug, Default)]
pub(super) struct OpenTexts {
    seals: Seals,
    generations: Generations,
    /// The texts, in order of their start.
    texts: Vec<ShownText>,
}

/// An open text in the state shown to readers.
#[derive(Debug)]
struct ShownText {
    text: OpenText,
    /// False after the tail follows the stream anew, because the tail may have missed pieces. The entry stays, above
    /// all because of the generation. The stream may have lost the generation, and readers must not see an older
    /// generation.
    is_certain: bool,
    /// The current `text_start` frame. The frame is cached because many readers may begin between two pieces.
    rendered: Option<Arc<RenderedFrame>>,
}

/// The stream contradicts the shown text: pieces are missing between the two.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissingPiece;

impl OpenTexts {
    /// Notes an event of every reader. Texts replaced by the event are no longer open.
    pub(super) fn note(&mut self, event: &Event) {
        self.seals.note(event);
        self.texts
            .retain(|shown| !self.seals.cover(&shown.text.key));
    }

    /// Notes the newest generations from the store. Texts of older generations are no longer open, because a reader may
    /// have seen a newer generation at another gateway.
    pub(super) fn note_generations(&mut self, newest: &BTreeMap<String, u32>) {
        self.generations.note(newest);
        self.texts.retain(|ShownText { text, .. }| {
            !self.generations.is_superseded(&text.key, text.generation)
        });
    }

    /// Returns true when no text is open.
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Notes a text in its current state in the stream. Returns the text's frames. A text replaced by an event or by a
    /// newer generation has no frames.
    pub(super) fn start(&mut self, text: OpenText) -> Vec<LiveFrame> {
        if self.is_replaced(&text.key, text.generation) {
            return Vec::new();
        }
        let mut frames = vec![LiveFrame::TextStart(text.clone())];
        frames.extend(text.is_ended.then(|| LiveFrame::end_of(&text)));
        let shown = self
            .texts
            .iter_mut()
            .find(|shown| shown.text.key == text.key);
        if shown
            .as_ref()
            .is_some_and(|shown| text.generation < shown.text.generation)
        {
            return Vec::new();
        }
        let now = ShownText {
            text,
            is_certain: true,
            rendered: None,
        };
        if let Some(shown) = shown {
            *shown = now;
            return frames;
        }
        if self.texts.len() >= MAX_TEXTS {
            self.texts.remove(0);
        }
        self.texts.push(now);
        frames
    }

    /// Notes the next piece of a text. Returns the piece's frames.
    pub(super) fn append(&mut self, piece: Piece) -> Result<Vec<LiveFrame>, MissingPiece> {
        if self.is_replaced(&piece.key, piece.generation) {
            return Ok(Vec::new());
        }
        let shown = self
            .texts
            .iter_mut()
            .find(|shown| shown.text.key == piece.key);
        let Some(ShownText {
            text,
            is_certain,
            rendered,
        }) = shown
        else {
            return Err(MissingPiece);
        };
        if piece.generation < text.generation {
            return Ok(Vec::new());
        }
        let is_next = (piece.generation, piece.offset) == (text.generation, text.text.len());
        if !*is_certain || !is_next {
            return Err(MissingPiece);
        }
        *rendered = None;
        text.text.push_str(&piece.text);
        text.is_ended |= piece.is_end;
        let end = piece.is_end.then(|| LiveFrame::end_of(text));
        let delta = (!piece.text.is_empty()).then_some(LiveFrame::TextDelta(piece));
        Ok(delta.into_iter().chain(end).collect())
    }

    /// Returns true when an event or a newer generation has replaced the text.
    fn is_replaced(&self, key: &TextKey, generation: u32) -> bool {
        self.seals.cover(key) || self.generations.is_superseded(key, generation)
    }

    /// Notes that the tail follows the stream anew. Pieces of a text count again only after the text's next start.
    pub(super) fn doubt(&mut self) {
        for shown in &mut self.texts {
            shown.is_certain = false;
        }
    }

    /// Returns the frames of every open text, for a reader that begins now.
    pub(super) fn frames(
        &mut self,
        conversation: &str,
        account: &Arc<Account>,
    ) -> Vec<Arc<RenderedFrame>> {
        let mut frames = Vec::new();
        for ShownText { text, rendered, .. } in &mut self.texts {
            let render = |frame| Arc::new(RenderedFrame::new(conversation, frame, account));
            let start = rendered.get_or_insert_with(|| render(LiveFrame::TextStart(text.clone())));
            frames.push(Arc::clone(start));
            if text.is_ended {
                frames.push(render(LiveFrame::end_of(text)));
            }
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use everturn_stream::Part;
    use proptest::prelude::*;

    use super::*;
    use crate::{config::GatewayConfig, limits::memory::Memory};

    #[derive(Debug, Clone)]
    enum Received {
        Start(OpenText),
        Piece(Piece),
        Generation(String, u32),
        Doubt,
    }

    /// Any messages from Redis. Some of the messages fit together.
    fn received() -> impl Strategy<Value = Received> {
        let number = prop_oneof![4 => 0..3_u32, 1 => any::<u32>()];
        let offset = prop_oneof![4 => 0..6_usize, 1 => any::<usize>()];
        let part = prop_oneof![Just(Part::Text), Just(Part::Reasoning)];
        let texts = (
            ("[ab]", number.clone(), part, number, offset),
            ("[aé]{0,3}", any::<bool>(), 0..5_u8),
        );
        texts.prop_map(
            |((agent, step, part, generation, offset), (text, is_end, kind))| {
                let key = TextKey {
                    agent_execution_id: agent.clone(),
                    step,
                    part,
                };
                let message_id = "m".to_owned();
                match kind {
                    0 => Received::Start(OpenText {
                        message_id,
                        key,
                        generation,
                        text,
                        is_ended: is_end,
                    }),
                    1 => Received::Generation(agent, generation),
                    2 => Received::Doubt,
                    _ => Received::Piece(Piece {
                        message_id,
                        key,
                        generation,
                        offset,
                        text,
                        is_end,
                        continues: false,
                    }),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn any_pieces_are_shown_as_the_text_that_they_make(all in prop::collection::vec(received(), 0..60)) {
            let account = Memory::new(&GatewayConfig::default()).account("t");
            let mut open = OpenTexts::default();
            let mut shown: BTreeMap<TextKey, (u32, String)> = BTreeMap::new();
            for received in all {
                let frames = match received {
                    Received::Start(text) => open.start(text),
                    Received::Piece(piece) => open.append(piece).unwrap_or_default(),
                    Received::Generation(agent, generation) => {
                        open.note_generations(&BTreeMap::from([(agent, generation)]));
                        Vec::new()
                    }
                    Received::Doubt => {
                        open.doubt();
                        Vec::new()
                    }
                };
                for frame in frames {
                    match frame {
                        LiveFrame::TextStart(text) => {
                            let newest = shown.insert(text.key, (text.generation, text.text));
                            prop_assert!(newest.is_none_or(|(newest, _)| newest <= text.generation));
                        }
                        LiveFrame::TextDelta(piece) => {
                            let (generation, text) = shown.get_mut(&piece.key).expect("a start came before");
                            prop_assert_eq!((*generation, text.len()), (piece.generation, piece.offset));
                            text.push_str(&piece.text);
                        }
                        _ => {}
                    }
                }
                for ShownText { text, .. } in &open.texts {
                    prop_assert_eq!(shown.get(&text.key), Some(&(text.generation, text.text.clone())));
                }
                prop_assert!(open.frames("c", &account).len() <= 2 * MAX_TEXTS);
            }
        }
    }
}
