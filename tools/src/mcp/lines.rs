//! Joins the lines of a message that a program writes in several lines: JSON that is laid out for people, or a text with a bare
//! line break. The protocol wants a message in one line.
//!
//! Pure.

use super::lenient::IdFinder;

/// The lines since the begin of a message without an end.
#[derive(Default)]
pub(super) struct Lines {
    open: Option<Open>,
}

struct Open {
    text: Vec<u8>,
    pass: IdFinder,
}

impl Lines {
    /// True while a message has no end.
    pub(super) fn are_open(&self) -> bool {
        self.open.is_some()
    }

    /// Adds a line. Returns the texts that are complete, or that get no end.
    pub(super) fn add(&mut self, line: Vec<u8>, max_bytes: usize) -> Vec<Vec<u8>> {
        let Some(mut open) = self.open.take() else {
            self.open = Open::of(&line);
            return if self.open.is_some() {
                Vec::new()
            } else {
                vec![line]
            };
        };
        if is_message(&line) {
            return vec![open.text, line];
        }
        open.add(&line);
        if open.pass.is_open() && open.text.len() < max_bytes {
            self.open = Some(open);
            return Vec::new();
        }
        vec![open.text]
    }

    /// Returns the text of a message that gets no end.
    pub(super) fn end(&mut self) -> Vec<Vec<u8>> {
        self.open.take().into_iter().map(|open| open.text).collect()
    }
}

impl Open {
    /// Begins a message with a line that has no end.
    fn of(line: &[u8]) -> Option<Self> {
        let trimmed = line.trim_ascii();
        let begins = trimmed.starts_with(b"{") || trimmed.starts_with(b"[");
        let may_end = trimmed.ends_with(b"}") || trimmed.ends_with(b"]");
        if !begins || (may_end && trimmed.len() > 1) {
            return None;
        }
        let mut open = Self {
            text: Vec::new(),
            pass: IdFinder::default(),
        };
        open.add(line);
        open.pass.is_open().then_some(open)
    }

    fn add(&mut self, line: &[u8]) {
        self.text.extend_from_slice(line);
        self.pass.read(line);
    }
}

/// True for a whole message. The line before then gets no end.
fn is_message(line: &[u8]) -> bool {
    let has_version = line.windows(9).any(|part| part == b"\"jsonrpc\"");
    has_version && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    fn joined(lines: &[&str]) -> Vec<String> {
        let mut joined = Lines::default();
        let mut texts = Vec::new();
        for line in lines {
            texts.extend(joined.add(format!("{line}\n").into_bytes(), 100));
        }
        texts.extend(joined.end());
        let texts = texts.into_iter().map(String::from_utf8);
        texts
            .map(|text| text.unwrap().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn a_message_in_several_lines_is_one_text() {
        let laid_out = [
            "{",
            r#"  "jsonrpc": "2.0","#,
            r#"  "id": 1,"#,
            r#"  "result": {}"#,
            "}",
        ];
        assert_eq!(joined(&laid_out), [laid_out.join("\n")]);
        let bare = [
            r#"{"jsonrpc":"2.0","id":1,"result":{"text":"a"#,
            r#"b } c"}}"#,
        ];
        assert_eq!(joined(&bare), [bare.join("\n")]);
        assert_eq!(
            joined(&[bare[0], bare[1], ANSWER]),
            [&bare.join("\n"), ANSWER]
        );
    }

    #[test]
    fn a_message_without_an_end_holds_no_other_message() {
        let cut = r#"{"jsonrpc":"2.0","id":2,"res"#;
        assert_eq!(joined(&[cut, ANSWER]), [cut, ANSWER]);
        assert_eq!(joined(&["{", ANSWER]), ["{", ANSWER]);
        assert_eq!(
            joined(&["[12:00] ready", ANSWER]),
            ["[12:00] ready", ANSWER]
        );
        assert_eq!(joined(&[cut]), [cut]);
        let long = "x".repeat(90);
        assert_eq!(joined(&[cut, &long]), [format!("{cut}\n{long}")]);
    }
}
