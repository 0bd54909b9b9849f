//! Decides where a connection is cut: after a number of bytes, or a little later, at a place where a cut is hard to
//! handle.

use std::ops::AddAssign;

use crate::random::Random;

/// Bytes that a connection may go further than planned until it comes to its place.
const SEARCH_BYTES: usize = 2048;

/// The place of the last byte that goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutPlace {
    /// Any byte.
    Anywhere,
    /// The last byte of `id:`, before the number.
    BehindId,
    /// The first byte of a character of several bytes.
    InCharacter,
    /// A byte in the name of `text_end`, just before the event that replaces the text.
    AtTextEnd,
}

/// Decides how many bytes of a connection go through.
#[derive(Debug)]
pub struct Cut {
    /// Bytes that may still go through; `None` for a connection that is never cut.
    after: Option<usize>,
    place: CutPlace,
    seen: usize,
    last: [u8; 4],
    places: CutPlaces,
}

/// Counts the places that cuts have hit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CutPlaces {
    /// All cuts.
    pub cuts: usize,
    /// Cuts in the middle of a frame.
    pub in_frame: usize,
    /// Cuts between `id:` and its number.
    pub behind_id: usize,
    /// Cuts in the middle of a character.
    pub in_character: usize,
    /// Cuts in the frame that says that a text has ended.
    pub at_text_end: usize,
}

impl Cut {
    /// Makes a connection that is never cut.
    pub fn never() -> Self {
        Self {
            after: None,
            place: CutPlace::Anywhere,
            seen: 0,
            last: [0; 4],
            places: CutPlaces::default(),
        }
    }

    /// Makes a cut after 1 to `limit` bytes.
    pub fn within(limit: usize, random: &mut Random) -> Self {
        let place = *random.pick(&[
            CutPlace::Anywhere,
            CutPlace::BehindId,
            CutPlace::InCharacter,
            CutPlace::AtTextEnd,
        ]);
        Self {
            after: Some(1 + random.below(limit)),
            place,
            ..Self::never()
        }
    }

    /// Returns how many bytes of the chunk come before the cut; `None` when all do, and the connection goes on.
    pub fn through(&mut self, chunk: &[u8]) -> Option<usize> {
        let after = self.after?;
        for (at, byte) in chunk.iter().enumerate() {
            self.seen += 1;
            self.last.rotate_left(1);
            self.last[3] = *byte;
            if self.seen >= after && (self.is_place() || self.seen >= after + SEARCH_BYTES) {
                return Some(at + 1);
            }
        }
        None
    }

    /// Notes which place the cut has hit: `rest` is the beginning of the frame that was cut.
    pub fn note_place(&mut self, rest: &[u8]) {
        let is_in_character =
            std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
        self.places += CutPlaces {
            cuts: 1,
            in_frame: usize::from(!rest.is_empty()),
            behind_id: usize::from(rest == b"id:"),
            in_character: usize::from(is_in_character),
            at_text_end: usize::from(rest == b"event: text_end"),
        };
    }

    /// Returns the places that it has hit.
    pub fn places(&self) -> CutPlaces {
        self.places
    }

    fn is_place(&self) -> bool {
        match self.place {
            CutPlace::Anywhere => true,
            CutPlace::BehindId => self.last == *b"\nid:",
            // This is the first byte of a character of two to four bytes.
            CutPlace::InCharacter => self.last[3] >= 0xC0,
            CutPlace::AtTextEnd => self.last == *b"_end",
        }
    }
}

impl AddAssign for CutPlaces {
    fn add_assign(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.in_frame += other.in_frame;
        self.behind_id += other.behind_id;
        self.in_character += other.in_character;
        self.at_text_end += other.at_text_end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(place: CutPlace, after: usize) -> Cut {
        Cut {
            after: Some(after),
            place,
            ..Cut::never()
        }
    }

    #[test]
    fn cuts_where_it_should_whatever_the_chunks() {
        let text = "data: é\n\nid: 5\n";
        let through = |mut cut: Cut, size: usize| {
            let mut passed = 0;
            for chunk in text.as_bytes().chunks(size) {
                match cut.through(chunk) {
                    Some(bytes) => return Some(passed + bytes),
                    None => passed += chunk.len(),
                }
            }
            None
        };
        for size in 1..text.len() {
            assert_eq!(through(cut(CutPlace::Anywhere, 4), size), Some(4));
            assert_eq!(through(cut(CutPlace::InCharacter, 4), size), Some(7));
            assert_eq!(through(cut(CutPlace::BehindId, 4), size), Some(13));
            assert_eq!(through(Cut::never(), size), None);
        }
    }

    #[test]
    fn a_place_that_does_not_come_is_not_waited_for() {
        assert_eq!(
            cut(CutPlace::BehindId, 1).through(&[b'x'; 2 * SEARCH_BYTES]),
            Some(1 + SEARCH_BYTES)
        );
    }

    #[test]
    fn notes_what_it_hit() {
        let noted = |rest: &[u8]| {
            let mut cut = Cut::never();
            cut.note_place(rest);
            let CutPlaces {
                cuts,
                in_frame,
                behind_id,
                in_character,
                at_text_end,
            } = cut.places();
            [cuts, in_frame, behind_id, in_character, at_text_end]
        };
        assert_eq!(noted(b""), [1, 0, 0, 0, 0]);
        assert_eq!(noted(b"id:"), [1, 1, 1, 0, 0]);
        assert_eq!(noted(b"data: \xc3"), [1, 1, 0, 1, 0]);
        assert_eq!(noted(b"event: text_end"), [1, 1, 0, 0, 1]);
    }
}
