//! Pieces of a long text. Every piece is short enough for a model to read whole, and names the offset of the next
//! piece.

use everturn_proto::limits::TOOL_RESULT_INLINE_BYTES;

/// The most bytes of a piece as JSON. Together with a list of files, a result stays below the limit for the model.
const MAX_PIECE_BYTES: usize = TOOL_RESULT_INLINE_BYTES / 4 * 3;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    /// The byte at which the next piece begins; `None` at the end of the text.
    pub(super) next_offset: Option<usize>,
}

/// Returns the piece at byte `offset`. An offset inside a character moves to the next character.
pub(super) fn piece(text: &str, offset: usize) -> Piece<'_> {
    let start = (offset.min(text.len())..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len());
    let rest = &text[start..];
    let mut bytes = 0;
    for (at, c) in rest.char_indices() {
        bytes += json_bytes(c);
        if bytes > MAX_PIECE_BYTES {
            return Piece {
                text: &rest[..at],
                next_offset: Some(start + at),
            };
        }
    }
    Piece {
        text: rest,
        next_offset: None,
    }
}

/// Returns the bytes of a character in a JSON string.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_text_is_one_piece() {
        assert_eq!(
            piece("abc", 0),
            Piece {
                text: "abc",
                next_offset: None
            }
        );
        assert_eq!(
            piece("aüc", 2),
            Piece {
                text: "c",
                next_offset: None
            }
        );
        assert_eq!(
            piece("abc", usize::MAX),
            Piece {
                text: "",
                next_offset: None
            }
        );
    }

    proptest! {
        /// The pieces of a text make the whole text, and each piece fits.
        #[test]
        fn pieces_make_the_text(part in "[\\PC\n\"\\\\\u{1}]{1,40}", times in 1usize..2000) {
            let text = part.repeat(times);
            let (mut read, mut next) = (String::new(), Some(0));
            while let Some(offset) = next {
                let piece = piece(&text, offset);
                prop_assert!(serde_json::to_string(piece.text).unwrap().len() <= MAX_PIECE_BYTES + 2);
                prop_assert!(!piece.text.is_empty());
                read.push_str(piece.text);
                next = piece.next_offset;
            }
            prop_assert_eq!(read, text);
        }
    }
}
