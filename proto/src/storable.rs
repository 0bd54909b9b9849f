//! The parts of a JSON text that the store does not take, and the length of the text with its numbers written out.
//! PostgreSQL's texts have no NUL and no lone surrogates. Many readers write numbers out: `1e131071` has 131,072 digits.

/// The most digits that a number with an exponent may have when written out. Every 64-bit float has fewer digits.
const MAX_WRITTEN_OUT: usize = 500;
/// The most digits of a number without an exponent: PostgreSQL's numbers have at most 16,383 digits behind the point.
const MAX_DIGITS: usize = 16_000;

/// Returns the text with replacements for parts that the store cannot hold. U+FFFD replaces escapes of NUL and of lone
/// surrogates, and strings of equal characters replace numbers that are too long. `None` when the text needs no
/// replacement.
pub(crate) fn made_storable(json: &str) -> Option<String> {
    let mut out = String::new();
    let mut is_changed = false;
    for token in Tokens::of(json) {
        match token {
            Token::Escape(escape) if is_unstorable(escape) => {
                is_changed = true;
                out.push('\u{FFFD}');
            }
            Token::Number(number) if is_too_long(number) => {
                is_changed = true;
                out.push('"');
                out.push_str(number);
                out.push('"');
            }
            Token::Escape(text) | Token::Number(text) | Token::Other(text) => out.push_str(text),
        }
    }
    is_changed.then_some(out)
}

/// Returns the length of the text in bytes with every number written out.
pub(crate) fn stored_len(json: &str) -> usize {
    let written_out = Tokens::of(json).map(|token| match token {
        Token::Number(number) => number.len().max(written_out(number)),
        Token::Escape(text) | Token::Other(text) => text.len(),
    });
    written_out.sum()
}

/// Returns the numbers of a JSON text, as written.
pub(crate) fn numbers(json: &str) -> impl Iterator<Item = &str> {
    Tokens::of(json).filter_map(|token| match token {
        Token::Number(number) => Some(number),
        Token::Escape(_) | Token::Other(_) => None,
    })
}

/// A token of a JSON text.
enum Token<'a> {
    /// An escape in a string. Both halves of a surrogate pair are a single token.
    Escape(&'a str),
    Number(&'a str),
    /// Any other text.
    Other(&'a str),
}

/// Cuts a JSON text into tokens.
struct Tokens<'a> {
    rest: &'a str,
    is_in_string: bool,
}

impl<'a> Tokens<'a> {
    fn of(json: &'a str) -> Self {
        Self {
            rest: json,
            is_in_string: false,
        }
    }

    /// Takes the next `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        token
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let first = self.rest.bytes().next()?;
        let until = |is_end: fn(char) -> bool| self.rest.find(is_end).unwrap_or(self.rest.len());
        Some(match first {
            b'"' => {
                self.is_in_string = !self.is_in_string;
                Token::Other(self.take(1))
            }
            b'\\' => Token::Escape(self.take(escape_len(self.rest))),
            _ if self.is_in_string => {
                let end = until(|c| matches!(c, '"' | '\\'));
                Token::Other(self.take(end))
            }
            b'-' | b'0'..=b'9' => {
                let end = until(|c| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
                Token::Number(self.take(end))
            }
            _ => {
                let end = until(|c| matches!(c, '"' | '-' | '0'..='9'));
                Token::Other(self.take(end))
            }
        })
    }
}

/// Returns the length of the escape at the start of `text`. Two escapes for a single character count as one escape.
fn escape_len(text: &str) -> usize {
    match (escaped_unit(text), text.get(6..).and_then(escaped_unit)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
        (Some(_), _) => 6,
        // A two-character escape; valid JSON has a character behind the backslash.
        (None, _) => 1 + text[1..].chars().next().map_or(0, char::len_utf8),
    }
}

/// True for an escape of NUL or of a surrogate without its other half.
fn is_unstorable(escape: &str) -> bool {
    escape.len() == 6 && matches!(escaped_unit(escape), Some(0 | 0xD800..=0xDFFF))
}

/// Returns the UTF-16 unit of a `\uXXXX` at the start of `text`.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

fn is_too_long(number: &str) -> bool {
    let has_exponent = number.contains(['e', 'E']);
    written_out(number)
        > if has_exponent {
            MAX_WRITTEN_OUT
        } else {
            MAX_DIGITS
        }
}

/// Returns the most digits that the number may have when written out.
fn written_out(number: &str) -> usize {
    let (digits, exponent) = match number.split_once(['e', 'E']) {
        // An exponent outside `i32` writes out to more digits than any limit.
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().unwrap_or(i32::MAX)),
        None => (number, 0),
    };
    let shift = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX);
    digits.len().saturating_add(shift)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_the_store_does_not_take_is_replaced() {
        for fine in [
            r#""plain""#,
            r#""\\u0000 is a backslash""#,
            r#""\ud83d\ude00""#,
            r#"{"a":"\n\"\\"}"#,
            r#""1e131071 in a text""#,
            "[1e308, 1.7976931348623157e308, 5e-324, -0.0e10, 123456789012345678901234567890]",
        ] {
            assert_eq!(made_storable(fine), None, "{fine}");
        }
        for (text, expected) in [
            (r#""a\u0000b""#, "\"a\u{FFFD}b\""),
            (
                r#"{"\ud83d":"\ude00\ud83d\ude00"}"#,
                "{\"\u{FFFD}\":\"\u{FFFD}\\ud83d\\ude00\"}",
            ),
            (r#""\\\u0000""#, "\"\\\\\u{FFFD}\""),
            (
                r#"{"n":1e131071,"m":[-1.5E-9999,2]}"#,
                r#"{"n":"1e131071","m":["-1.5E-9999",2]}"#,
            ),
            ("1e99999999999999999999", "\"1e99999999999999999999\""),
        ] {
            assert_eq!(made_storable(text).as_deref(), Some(expected), "{text}");
        }
        let digits = "7".repeat(MAX_DIGITS);
        assert_eq!(made_storable(&digits), None);
        assert!(made_storable(&format!("{digits}7")).is_some());
    }

    #[test]
    fn numbers_count_as_they_are_written_out() {
        assert_eq!(stored_len(r#"{"a":"1e99","b":[12,3.5]}"#), 25);
        assert_eq!(stored_len("[1e300]"), 2 + 301);
        assert!(stored_len("[1e-300, -2.5e+10]") >= 300);
    }

    proptest! {
        #[test]
        fn what_is_storable_is_json_and_stays_so(value in values()) {
            let text = value.to_string();
            prop_assert_eq!(made_storable(&text), None, "{}", text);
            prop_assert!(stored_len(&text) >= text.len());
        }

        #[test]
        fn any_text_is_cut_without_a_panic(text in "\\PC{0,60}", json in "[\\[\"\\\\0-9eEu.+-]{0,40}") {
            for text in [text, json] {
                let _ = (made_storable(&text), stored_len(&text));
                let whole: String = Tokens::of(&text).map(|token| match token {
                    Token::Escape(part) | Token::Number(part) | Token::Other(part) => part,
                }).collect();
                prop_assert_eq!(whole, text);
            }
        }
    }

    /// Any value without NUL. The floats fit into 64 bits.
    fn values() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<f64>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "[^\\x00]{0,20}".prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 20, 5, |inner| {
            prop::collection::vec(inner, 0..5).prop_map(Into::into)
        })
    }
}
