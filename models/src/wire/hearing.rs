//! The texts of a reply while they arrive: they are kept, reported to the listener, and bounded (invariant 10, nothing
//! grows without a bound).

use everturn_stream::Part;

use super::{calls::Calls, think_tags::ThinkTags};
use crate::{error::ModelError, limits::check_size, port::ReplyListener};

/// The text between two blocks of a text.
pub(crate) const BREAK: &str = "\n\n";

/// Hears the texts of one reply.
pub(crate) struct Hearing<'a> {
    listener: &'a mut dyn ReplyListener,
    text: Heard,
    reasoning: Heard,
    /// The reader of `<think>` tags, for servers that leave thoughts in the text.
    tags: Option<ThinkTags>,
    /// The bytes of each call's arguments that the listener has.
    calls: Vec<usize>,
}

/// The heard part of a text.
#[derive(Default)]
struct Heard {
    text: String,
    /// The block of the last piece.
    block: Option<Block>,
}

/// The block of a text: the index of its item in the reply, and the index of its part in the item.
type Block = (u64, u64);

/// The texts of a reply.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) text: String,
    pub(crate) reasoning: String,
}

impl<'a> Hearing<'a> {
    /// `has_tags`: thoughts may be in the text, within `<think>` tags.
    pub(crate) fn new(listener: &'a mut dyn ReplyListener, has_tags: bool) -> Self {
        Self {
            listener,
            text: Heard::default(),
            reasoning: Heard::default(),
            tags: has_tags.then(ThinkTags::default),
            calls: Vec::new(),
        }
    }

    /// Takes a piece of a text that has no blocks.
    pub(crate) fn hear(&mut self, part: Part, piece: &str) -> Result<(), ModelError> {
        self.hear_block(part, Block::default(), piece)
    }

    /// Takes a piece of the text in a block. A break divides the blocks of a text.
    pub(crate) fn hear_block(
        &mut self,
        part: Part,
        block: Block,
        piece: &str,
    ) -> Result<(), ModelError> {
        match (part, &mut self.tags) {
            (Part::Text, Some(tags)) => {
                for (part, piece) in tags.push(piece) {
                    self.say(part, block, &piece)?;
                }
                Ok(())
            }
            _ => self.say(part, block, piece),
        }
    }

    /// Reports the new part of each call's arguments. A call that writes its arguments anew is reported no further,
    /// because readers get the whole call when it is saved.
    pub(crate) fn hear_calls(&mut self, calls: &Calls) {
        for (position, (name, arguments)) in calls.so_far().enumerate() {
            let Some(part) = Part::of_call(position) else {
                return;
            };
            if self.calls.len() <= position {
                self.calls.push(0);
            }
            let heard = &mut self.calls[position];
            let Some(piece) = arguments.get(*heard..).filter(|piece| !piece.is_empty()) else {
                continue;
            };
            let piece = without_nul(piece);
            if *heard == 0 {
                self.listener.delta(part, &format!("{name}\n{piece}"));
            } else {
                self.listener.delta(part, &piece);
            }
            *heard = arguments.len();
        }
    }

    /// Ends the texts.
    pub(crate) fn finish(&mut self) -> Result<Texts, ModelError> {
        if let Some(tags) = self.tags.take() {
            for (part, piece) in tags.finish() {
                self.say(part, self.text.block.unwrap_or_default(), &piece)?;
            }
        }
        Ok(Texts {
            text: std::mem::take(&mut self.text.text),
            reasoning: std::mem::take(&mut self.reasoning.text),
        })
    }

    /// Takes a whole text at the end of a reply, and reports the rest that the listener has not heard yet.
    pub(crate) fn hear_rest(&mut self, part: Part, whole: &str) -> Result<(), ModelError> {
        let Some(heard) = self.heard(part) else {
            return Ok(());
        };
        let block = heard.block.unwrap_or_default();
        match whole.strip_prefix(heard.text.as_str()) {
            Some(rest) => self.say(part, block, rest),
            None => Ok(()),
        }
    }

    /// Returns the heard text, without the thoughts.
    pub(crate) fn text(&self) -> &str {
        &self.text.text
    }

    /// Returns the listener, for news that are no texts.
    pub(crate) fn listener(&mut self) -> &mut dyn ReplyListener {
        self.listener
    }

    fn heard(&mut self, part: Part) -> Option<&mut Heard> {
        match part {
            Part::Text => Some(&mut self.text),
            Part::Reasoning => Some(&mut self.reasoning),
            Part::Call(_) => None,
        }
    }

    fn say(&mut self, part: Part, block: Block, piece: &str) -> Result<(), ModelError> {
        if piece.is_empty() {
            return Ok(());
        }
        let Some(heard) = self.heard(part) else {
            return Ok(());
        };
        let is_next = heard.block.replace(block).is_some_and(|last| last != block);
        let mut said = String::new();
        if is_next && !heard.text.is_empty() {
            said.push_str(BREAK);
        }
        said.push_str(&without_nul(piece));
        check_size("text", heard.text.len() + said.len())?;
        heard.text.push_str(&said);
        self.listener.delta(part, &said);
        Ok(())
    }
}

/// Returns the text with U+FFFD for each NUL, because neither PostgreSQL nor a terminal takes a NUL.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::calls::{Arguments, Piece};

    #[test]
    fn the_arguments_of_calls_are_reported_as_they_grow() {
        let mut said = Vec::new();
        let mut listener = |part: Part, piece: &str| said.push((part, piece.to_owned()));
        let mut hearing = Hearing::new(&mut listener, false);
        let mut calls = Calls::new([]);
        for (index, name, letters) in [
            (0, Some("write"), ""),
            (0, None, "{\"a\":"),
            (1, Some("clock"), "{}"),
            (0, None, "1}"),
        ] {
            let piece = Piece {
                index: Some(index),
                order: None,
                id: None,
                name,
                arguments: Arguments::Letters(letters),
            };
            calls.hear(&piece).unwrap();
            hearing.hear_calls(&calls);
            hearing.hear_calls(&calls);
        }
        let (first, second) = (Part::Call(0), Part::Call(1));
        let expected = [
            (first, "write\n{\"a\":"),
            (second, "clock\n{}"),
            (first, "1}"),
        ];
        assert_eq!(said, expected.map(|(part, piece)| (part, piece.to_owned())));
    }

    #[test]
    fn blocks_are_divided_and_a_nul_is_replaced() {
        let mut said = Vec::new();
        let mut listener = |part: Part, piece: &str| said.push((part, piece.to_owned()));
        let mut hearing = Hearing::new(&mut listener, false);
        for (block, piece) in [
            ((0, 0), "One"),
            ((0, 0), "."),
            ((0, 2), ""),
            ((0, 2), "Tw\0o."),
        ] {
            hearing.hear_block(Part::Text, block, piece).unwrap();
        }
        hearing.hear(Part::Reasoning, "hm").unwrap();
        let texts = hearing.finish().unwrap();
        assert_eq!(
            texts,
            Texts {
                text: "One.\n\nTw\u{fffd}o.".into(),
                reasoning: "hm".into()
            }
        );
        let joined: String = said
            .iter()
            .filter(|(part, _)| *part == Part::Text)
            .map(|(_, piece)| &**piece)
            .collect();
        assert_eq!(joined, "One.\n\nTw\u{fffd}o.");
    }
}
