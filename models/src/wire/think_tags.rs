//! `<think>` tags: servers without a reasoning parser leave a model's thoughts at the beginning of its text.
//!
//! Only a tag before the first letter of the answer counts, because an answer may write about tags.

use everturn_stream::Part;

/// The pairs of tags around a model's thoughts.
const TAGS: [(&str, &str); 4] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
];

/// Divides the pieces of a text into thoughts and answer.
#[derive(Default)]
pub(crate) struct ThinkTags {
    state: State,
    /// The text whose part is not known yet.
    held: String,
}

#[derive(Clone, Copy, Default)]
enum State {
    /// Before the first letter.
    #[default]
    Begin,
    /// Between the first tag and the first letter of the thoughts. The value is the end tag.
    Before(&'static str),
    /// Within the thoughts. The value is the end tag.
    Thoughts(&'static str),
    /// After the thoughts, before the first letter of the answer.
    After,
    /// In the answer.
    Answer,
}

impl ThinkTags {
    /// Takes a piece, and returns the pieces whose part is known.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<(Part, String)> {
        let mut said = Vec::new();
        self.held.push_str(piece);
        while self.step(&mut said) {}
        said
    }

    /// Ends the text, and returns the rest.
    pub(crate) fn finish(self) -> Vec<(Part, String)> {
        let part = match self.state {
            State::Before(_) | State::Thoughts(_) => Part::Reasoning,
            State::Begin | State::After | State::Answer => Part::Text,
        };
        let rest = match self.state {
            State::Before(_) | State::After => self.held.trim_start(),
            _ => &self.held,
        };
        if rest.is_empty() {
            Vec::new()
        } else {
            vec![(part, rest.to_owned())]
        }
    }

    /// Says the known part of the held text. Returns true when the state changed, and more may be known.
    fn step(&mut self, said: &mut Vec<(Part, String)>) -> bool {
        match self.state {
            State::Begin => {
                let text = self.held.trim_start();
                if let Some((begin, end)) = TAGS.iter().find(|(begin, _)| text.starts_with(begin)) {
                    self.held = text[begin.len()..].to_owned();
                    self.state = State::Before(end);
                    true
                } else if TAGS.iter().any(|(begin, _)| begin.starts_with(text)) {
                    false
                } else {
                    self.state = State::Answer;
                    true
                }
            }
            State::Thoughts(end) => {
                if let Some((thoughts, answer)) = self.held.split_once(end) {
                    let (thoughts, answer) = (thoughts.trim_end().to_owned(), answer.to_owned());
                    say(said, Part::Reasoning, thoughts);
                    self.held = answer;
                    self.state = State::After;
                    return true;
                }
                // The end of the held text may be the beginning of the tag, or the space before the tag.
                let known = self.held.len()
                    - begun(self.held.trim_end(), end)
                        .max(self.held.len() - self.held.trim_end().len());
                let known = self.held[..known].trim_end().len();
                let rest = self.held.split_off(known);
                say(
                    said,
                    Part::Reasoning,
                    std::mem::replace(&mut self.held, rest),
                );
                false
            }
            State::Before(end) => self.begin(State::Thoughts(end)),
            State::After => self.begin(State::Answer),
            State::Answer => {
                say(said, Part::Text, std::mem::take(&mut self.held));
                false
            }
        }
    }

    /// Leaves out the space before a text. Returns true when the text has begun.
    fn begin(&mut self, next: State) -> bool {
        self.held = self.held.trim_start().to_owned();
        let has_begun = !self.held.is_empty();
        if has_begun {
            self.state = next;
        }
        has_begun
    }
}

fn say(said: &mut Vec<(Part, String)>, part: Part, text: String) {
    if !text.is_empty() {
        said.push((part, text));
    }
}

/// Returns the bytes at the end of the text with which the tag may begin.
fn begun(text: &str, tag: &str) -> usize {
    let lengths = (1..tag.len()).rev();
    lengths
        .into_iter()
        .find(|length| text.ends_with(&tag[..*length]))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&str]) -> (String, String) {
        let mut tags = ThinkTags::default();
        let mut said: Vec<_> = pieces.iter().flat_map(|piece| tags.push(piece)).collect();
        said.extend(tags.finish());
        let of = |part: Part| {
            said.iter()
                .filter(|said| said.0 == part)
                .map(|(_, text)| &**text)
                .collect()
        };
        (of(Part::Reasoning), of(Part::Text))
    }

    #[test]
    fn thoughts_at_the_beginning_are_no_answer() {
        for (text, thoughts, answer) in [
            ("<think>\nhm </think>\n\nHello", "hm", "Hello"),
            (
                "\n <thinking>a < b </think></thinking>c",
                "a < b </think>",
                "c",
            ),
            ("[THINK]x[/THINK]y", "x", "y"),
            ("<think></think>y", "", "y"),
            ("<think>cut", "cut", ""),
            ("Hello <think>no</think>", "", "Hello <think>no</think>"),
            ("<thin air>", "", "<thin air>"),
            ("<thi", "", "<thi"),
            ("", "", ""),
        ] {
            assert_eq!(
                read(&[text]),
                (thoughts.to_owned(), answer.to_owned()),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_split_anywhere_changes_nothing(
            text in "(<think>|</think>|\\[THINK\\]|\\[/THINK\\]|[ \na<é/]){0,20}", cuts in prop::collection::vec(0_usize..60, 0..5),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).filter(|cut| text.is_char_boundary(*cut)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|at| &text[at[0]..at[1]]).collect();
            let (whole, parts) = (read(&[&text]), read(&pieces));
            prop_assert_eq!(&whole.1, &parts.1);
            prop_assert_eq!(whole.0.trim_end(), parts.0.trim_end());
        }
    }
}
