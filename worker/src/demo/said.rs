//! The words of a message: plain words, quoted texts and numbers.

use serde_json::{Number, Value};

/// The most characters of a message or a result that an answer repeats.
const MAX_ECHO: usize = 300;
/// Words without a meaning for the choice of a tool.
const COMMON: [&str; 54] = [
    "a", "about", "all", "an", "and", "are", "at", "be", "by", "call", "can", "could", "do",
    "does", "for", "from", "has", "have", "hello", "help", "hi", "how", "i", "if", "in", "is",
    "it", "its", "me", "my", "no", "not", "of", "on", "one", "or", "please", "tell", "that", "the",
    "this", "to", "tool", "up", "use", "was", "what", "when", "where", "which", "who", "with",
    "you", "your",
];

/// Quotation marks, with the mark at the end of the text.
const QUOTES: [(char, char); 5] = [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('«', '»')];

/// A word of a message, or a quoted text.
#[derive(Debug, PartialEq)]
pub(super) struct Word {
    /// The text, without quotation marks and without punctuation around it.
    pub(super) text: String,
    pub(super) is_quoted: bool,
    /// True for `NAME` in `NAME: value` and in `NAME=value`.
    pub(super) is_label: bool,
}

impl Word {
    /// Returns the number, if the word is a number.
    pub(super) fn number(&self) -> Option<Number> {
        let digits = self.text.trim_matches(['$', '€', '£', '%', '#']);
        let value: Value = serde_json::from_str(digits).ok()?;
        value.as_number().cloned()
    }

    /// True for a word with a digit, like the number of an order, and for an address of e-mail or of the web.
    pub(super) fn is_identifier(&self) -> bool {
        let has_digit = self.text.contains(|c: char| c.is_ascii_digit());
        has_digit || self.text.contains('@') || self.text.contains("://")
    }
}

/// Returns the words of a message in their order.
pub(super) fn words(message: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = message.trim_start();
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let quoted = QUOTES.iter().find(|(open, _)| *open == first);
        let quoted = quoted.and_then(|(_, close)| after.split_once(*close));
        if let Some((text, after)) = quoted {
            words.push(Word {
                text: text.to_owned(),
                is_quoted: true,
                is_label: false,
            });
            rest = after;
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '=');
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            let is_label = word.ends_with(':') || after.starts_with('=');
            let is_inner = |c: char| c.is_alphanumeric() || "-$€£%#_/".contains(c);
            let text = word.trim_matches(|c: char| !is_inner(c)).to_owned();
            if !text.is_empty() {
                words.push(Word {
                    text,
                    is_quoted: false,
                    is_label,
                });
            }
            rest = after.strip_prefix('=').unwrap_or(after);
        }
        rest = rest.trim_start();
    }
    words
}

/// Returns the meaningful words of a text in lower case and in the singular. Names like `order_status` are several words.
pub(super) fn terms(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.map(str::to_lowercase);
    let words = words.filter(|word| word.len() > 1 && !COMMON.contains(&word.as_str()));
    words.map(singular).collect()
}

fn singular(word: String) -> String {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with(['s', 'u']) => stem.to_owned(),
        _ => word,
    }
}

/// Returns the first sentence of a text.
pub(super) fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(at, c)| match c {
            '\n' => true,
            '.' | '!' | '?' | '。' => {
                let after = &text[at + c.len_utf8()..];
                after.is_empty() || after.starts_with(char::is_whitespace) || *c == '。'
            }
            _ => false,
        })
        .map_or(text.len(), |(at, c)| at + c.len_utf8());
    text[..end].trim_end()
}

/// Cuts a long text.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_ECHO) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_quotes_labels_and_numbers() {
        let words = words("Refund $12.50 for order A-7, city=Berlin: 'it''s “two words”?");
        let shown: Vec<_> = words
            .iter()
            .map(|word| (word.text.as_str(), word.is_quoted, word.is_label))
            .collect();
        assert_eq!(
            shown,
            [
                ("Refund", false, false),
                ("$12.50", false, false),
                ("for", false, false),
                ("order", false, false),
                ("A-7", false, false),
                ("city", false, true),
                ("Berlin", false, true),
                ("it", true, false),
                ("s", false, false),
                ("two words", true, false),
            ]
        );
        assert_eq!(words[1].number(), Number::from_f64(12.5));
        assert_eq!(words[4].number(), None);
    }

    #[test]
    fn terms_are_singular_and_mean_something() {
        assert_eq!(
            terms("Where are my Orders, and the order_status?"),
            ["order", "order", "status"]
        );
    }

    #[test]
    fn a_sentence_ends_at_its_full_stop() {
        assert_eq!(
            first_sentence(" Version 2.5 is out. Use it."),
            "Version 2.5 is out."
        );
        assert_eq!(first_sentence("# Role\nYou help."), "# Role");
        assert_eq!(first_sentence("no end"), "no end");
    }
}
