//! The kinds of the texts that a step may have.

use serde::{Deserialize, Serialize};

/// The most tool calls of a step whose arguments are shown while the model writes them. Further calls are shown when
/// they are saved.
pub const MAX_SHOWN_CALLS: u8 = 8;

/// The kind of a text. A step has at most one text of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Part {
    /// The text for the user: a thought or the answer.
    Text,
    /// The reasoning of a reasoning model, written before the answer.
    Reasoning,
    /// A tool call with this number, below [`MAX_SHOWN_CALLS`]: a line with the name of the tool, and then the arguments
    /// as the model writes them.
    Call(u8),
}

impl Part {
    /// Returns every part.
    pub fn all() -> impl Iterator<Item = Self> {
        let calls = (0..MAX_SHOWN_CALLS).map(Self::Call);
        [Self::Reasoning, Self::Text].into_iter().chain(calls)
    }

    /// Returns the part of the tool call at this position; `None`: the call is not shown.
    pub fn of_call(position: usize) -> Option<Self> {
        let number = u8::try_from(position).ok()?;
        (number < MAX_SHOWN_CALLS).then_some(Self::Call(number))
    }
}

/// The beginning of the word of a tool call.
const CALL: &str = "call_";

impl From<Part> for String {
    fn from(part: Part) -> Self {
        match part {
            Part::Text => "text".to_owned(),
            Part::Reasoning => "reasoning".to_owned(),
            Part::Call(number) => format!("{CALL}{number}"),
        }
    }
}

/// A word that is no part.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no part of a step")]
pub struct UnknownPart(String);

impl TryFrom<String> for Part {
    type Error = UnknownPart;

    fn try_from(word: String) -> Result<Self, UnknownPart> {
        let known = Self::all().find(|part| String::from(*part) == word);
        known.ok_or(UnknownPart(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_word() {
        let words: Vec<String> = Part::all().map(String::from).collect();
        assert_eq!(words[..3], ["reasoning", "text", "call_0"]);
        for (part, word) in Part::all().zip(words) {
            assert_eq!(Part::try_from(word).unwrap(), part);
        }
        for wrong in ["", "call_", "call_8", "call_00", "call_-1"] {
            assert!(Part::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
        assert_eq!(Part::of_call(7), Some(Part::Call(7)));
        assert_eq!(Part::of_call(8), None);
    }
}
