//! Repairs JSON that is almost JSON.

use std::fmt::Write as _;

use serde_json::Value;

use super::flaws::Flaws;

/// The most levels of a message. serde_json reads 127 levels.
const MAX_LEVELS: usize = 100;
/// The most tries to find the begin of the message behind other text.
const MAX_TRIES: usize = 16;
/// The value in the stead of a part below the last level.
const TOO_DEEP: &str = "\"…\"";

/// The messages in a text.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    pub(super) messages: Vec<Value>,
    /// The text from the begin of a message that stays no JSON.
    pub(super) broken: Option<&'a str>,
}

/// Reads the messages in a text. Other text may stand around the messages.
pub(super) fn read<'a>(text: &'a str, flaws: &mut Flaws) -> Found<'a> {
    let mut found = Found::default();
    let (mut at, mut tries, mut has_other_text) = (0, 0, false);
    while tries < MAX_TRIES
        && let Some(rest) = text.get(at..)
        && let Some(start) = rest.find('{')
    {
        tries += 1;
        has_other_text |= !is_between(&rest[..start]);
        let mut repair = Repair::new(&rest[start..]);
        let value = repair.run();
        let value = value.and_then(|repaired| serde_json::from_str(&repaired).ok());
        let Some(value) = value else {
            // The parts of a broken message are no messages.
            if begins_message(&rest[start..]) {
                found.broken = Some(&rest[start..]);
                return found;
            }
            has_other_text = true;
            at += start + 1;
            continue;
        };
        at += start + repair.at;
        if !is_message(&value) {
            has_other_text = true;
            continue;
        }
        tries = 0;
        for flaw in repair.flaws() {
            flaws.note(flaw);
        }
        found.messages.push(value);
    }
    has_other_text |= text.get(at..).is_some_and(|rest| !is_between(rest));
    if has_other_text && !found.messages.is_empty() {
        flaws.note("other text stands beside the message");
    }
    found
}

/// True for the characters around the messages of a batch.
fn is_between(text: &str) -> bool {
    let is_fit = |letter: char| letter.is_whitespace() || matches!(letter, '[' | ',' | ']');
    text.chars().all(is_fit)
}

fn begins_message(text: &str) -> bool {
    let begin = text.trim_start_matches('{').trim_start();
    let fields = ["\"jsonrpc\"", "\"id\"", "\"result\"", "\"error\""];
    fields.iter().any(|field| begin.starts_with(field))
}

/// True for a message of JSON-RPC. Servers also log in JSON, with ids of their own.
fn is_message(value: &Value) -> bool {
    let Some(fields) = value.as_object() else {
        return false;
    };
    let has = |field: &str| fields.contains_key(field);
    let of_message = ["id", "method", "params", "result", "error"];
    let are_all_of_message = || fields.keys().all(|field| of_message.contains(&&**field));
    let is_answer = has("id") && (has("result") || has("error"));
    has("jsonrpc") || (are_all_of_message() && (is_answer || has("method")))
}

/// A pass over a text, from the begin of an object to its end.
#[expect(clippy::struct_excessive_bools, reason = "each flaw is found or not")]
struct Repair<'a> {
    text: &'a str,
    at: usize,
    output: String,
    levels: usize,
    has_lone_surrogates: bool,
    has_bad_escapes: bool,
    has_other_numbers: bool,
    has_commas: bool,
    is_too_deep: bool,
}

impl<'a> Repair<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            output: String::with_capacity(text.len()),
            levels: 0,
            has_lone_surrogates: false,
            has_bad_escapes: false,
            has_other_numbers: false,
            has_commas: false,
            is_too_deep: false,
        }
    }

    fn flaws(&self) -> impl Iterator<Item = &'static str> {
        [
            (self.has_lone_surrogates, "a text is cut within a character"),
            (
                self.has_bad_escapes,
                "a text has characters that JSON escapes",
            ),
            (self.has_other_numbers, "NaN and infinite numbers are null"),
            (self.has_commas, "a comma stands behind the last entry"),
            (self.is_too_deep, "parts below 100 levels are left out"),
        ]
        .into_iter()
        .filter_map(|(has_flaw, flaw)| has_flaw.then_some(flaw))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Returns exact JSON; `None` when the object has no end.
    fn run(&mut self) -> Option<String> {
        loop {
            if let Some(word) = other_number(self.rest()) {
                self.at += word.len();
                self.output.push_str("null");
                self.has_other_numbers = true;
                continue;
            }
            let next = self.next()?;
            match next {
                '"' => {
                    self.output.push('"');
                    self.string()?;
                }
                '{' | '[' if self.levels >= MAX_LEVELS => {
                    self.skip()?;
                    self.output.push_str(TOO_DEEP);
                    self.is_too_deep = true;
                }
                '{' | '[' => {
                    self.levels += 1;
                    self.output.push(next);
                }
                '}' | ']' => {
                    self.drop_comma();
                    self.levels = self.levels.saturating_sub(1);
                    self.output.push(next);
                    if self.levels == 0 {
                        return Some(std::mem::take(&mut self.output));
                    }
                }
                next => self.output.push(next),
            }
        }
    }

    /// Drops a comma behind the last entry of a list or an object.
    fn drop_comma(&mut self) {
        let kept = self.output.trim_end();
        if let Some(kept) = kept.strip_suffix(',') {
            self.output.truncate(kept.len());
            self.has_commas = true;
        }
    }

    /// Skips the rest of an object or a list.
    fn skip(&mut self) -> Option<()> {
        let mut levels = 1_usize;
        while levels > 0 {
            match self.next()? {
                '"' => {
                    let kept = self.output.len();
                    self.string()?;
                    self.output.truncate(kept);
                }
                '{' | '[' => levels += 1,
                '}' | ']' => levels -= 1,
                _ => {}
            }
        }
        Some(())
    }

    /// Copies a string after its first quotation mark.
    fn string(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                '"' => {
                    self.output.push('"');
                    return Some(());
                }
                '\\' => self.escape()?,
                next if next < ' ' => {
                    // Writing to a `String` cannot fail.
                    let _ = write!(self.output, "\\u{:04x}", u32::from(next));
                    self.has_bad_escapes = true;
                }
                next => self.output.push(next),
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            'u' => self.unit(),
            next @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                self.output.push('\\');
                self.output.push(next);
            }
            next => {
                self.output.push_str("\\\\");
                self.output.push(next);
                self.has_bad_escapes = true;
            }
        }
        Some(())
    }

    /// Copies the escape of a UTF-16 unit, with the second unit of its character. A lone surrogate becomes U+FFFD.
    fn unit(&mut self) {
        let Some(first) = unit_of(self.rest()) else {
            self.output.push_str("\\\\u");
            self.has_bad_escapes = true;
            return;
        };
        let digits = self.at;
        self.at += 4;
        let second = self.rest().strip_prefix("\\u").and_then(unit_of);
        let is_pair = matches!(first, 0xD800..=0xDBFF) && matches!(second, Some(0xDC00..=0xDFFF));
        if is_pair {
            self.at += 6;
        }
        if !is_pair && matches!(first, 0xD800..=0xDFFF) {
            self.output.push('\u{FFFD}');
            self.has_lone_surrogates = true;
        } else {
            self.output.push_str("\\u");
            self.output
                .push_str(self.text.get(digits..self.at).unwrap_or_default());
        }
    }
}

/// Returns the UTF-16 unit of four hexadecimal digits.
fn unit_of(text: &str) -> Option<u16> {
    let digits = text.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

/// Returns a number that JavaScript, Python and C write, and JSON does not have.
fn other_number(text: &str) -> Option<&'static str> {
    let words = [
        "NaN",
        "-NaN",
        "-Infinity",
        "Infinity",
        "nan",
        "-nan",
        "-inf",
        "inf",
    ];
    words.into_iter().find(|word| text.starts_with(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn repaired(text: &str) -> Option<(Value, String)> {
        let mut flaws = Flaws::default();
        let value = read(text, &mut flaws).messages.into_iter().next()?;
        Some((value, flaws.to_string()))
    }

    #[test]
    fn a_text_that_is_cut_in_a_character_is_read() {
        let (value, flaws) =
            repaired(r#"{"jsonrpc":"2.0","a":"x\ud83d","b":"\ud83d\ude00","c":"\udc00y"}"#)
                .unwrap();
        assert_eq!(
            value,
            json!({"jsonrpc": "2.0", "a": "x\u{FFFD}", "b": "😀", "c": "\u{FFFD}y"})
        );
        assert_eq!(flaws, "a text is cut within a character");
    }

    #[test]
    fn numbers_and_escapes_of_other_languages_are_read() {
        let text =
            "{\"jsonrpc\":1,\"a\":[NaN,-Infinity,inf,],\"b\":\"C:\\dir\\x\tNaN\",\"c\":\"\\uzz\"}";
        let (value, flaws) = repaired(text).unwrap();
        assert_eq!(value["a"], json!([null, null, null]));
        assert_eq!(value["b"], "C:\\dir\\x\tNaN");
        assert_eq!(value["c"], "\\uzz");
        assert!(
            flaws.contains("escapes") && flaws.contains("NaN"),
            "{flaws}"
        );
    }

    #[test]
    fn other_text_around_the_message_is_dropped() {
        for noisy in [
            r#"INFO {x} ready {"jsonrpc":"2.0","id":7}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7}",
            r#"{"jsonrpc":"2.0","id":7} done"#,
        ] {
            let (value, flaws) = repaired(noisy).unwrap();
            assert_eq!(value["id"], 7, "{noisy}");
            assert!(flaws.contains("other text"), "{noisy}: {flaws}");
        }
        let other = [
            "listening on {host}",
            r#"{"level":30,"id":7,"msg":"ready"}"#,
            r#"{"level":"error","id":7,"error":"boom","request":{"jsonrpc":"2.0","id":7}}"#,
        ];
        for other in other {
            assert!(repaired(other).is_none(), "{other}");
        }
        assert!(repaired(r#"{"jsonrpc":"2.0","id":7"#).is_none());
    }

    #[test]
    fn a_batch_has_all_of_its_messages() {
        let one = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":1}}"#;
        let other = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        let read = |text: &str| {
            let mut flaws = Flaws::default();
            (read(text, &mut flaws).messages.len(), flaws.to_string())
        };
        assert_eq!(read(&format!("[{one},\n {other}]")), (2, String::new()));
        assert_eq!(read(&format!("{one}{other}")), (2, String::new()));
        let noise = "other text stands beside the message".to_owned();
        assert_eq!(read(&format!("{one} and {other}")), (2, noise));
    }

    #[test]
    fn parts_that_are_too_deep_are_left_out() {
        let deep = format!(
            r#"{{"jsonrpc":1,"kept":2,"deep":{}"]"{}}}"#,
            "[".repeat(5000),
            "]".repeat(5000)
        );
        let (value, flaws) = repaired(&deep).unwrap();
        assert_eq!((&value["jsonrpc"], &value["kept"]), (&json!(1), &json!(2)));
        assert!(flaws.contains("levels"), "{flaws}");
    }

    proptest! {
        #[test]
        fn exact_json_stays_as_it_is(text in "\\PC*", number in any::<i64>()) {
            let exact = json!({"jsonrpc": "2.0", "id": number, "text": text, "list": [text, null, true]});
            let (value, flaws) = repaired(&exact.to_string()).unwrap();
            prop_assert_eq!(value, exact);
            prop_assert_eq!(flaws, "");
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[{}\\[\\]\"\\\\udD8c0NaInfity,:\\PC]{0,200}") {
            let _no_panic = repaired(&text);
        }
    }
}
