//! The lenient JSON reader of frames.
//!
//! Servers cut a text within a surrogate pair, and write NaN. `serde_json` refuses both; here the half of a pair becomes
//! U+FFFD. Digits of large numbers are lost in a [`Value`], so [`raw`] gives a part of a frame as the server wrote it.

use std::{borrow::Cow, collections::HashMap};

use serde_json::{Value, value::RawValue};

/// A step on the way to a part of a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'a> {
    Key(&'a str),
    At(usize),
}

/// Reads a frame.
///
/// # Errors
///
/// The error of the JSON, when no repair makes it readable.
pub(crate) fn read(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match repaired(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(repaired) => serde_json::from_str(&repaired),
    })
}

/// Reads the values of a body that is no stream: one value, one after another, or a list of them. Each value has its
/// text.
pub(crate) fn read_loose(text: &str) -> Option<Vec<(Value, String)>> {
    let text = repaired(text);
    let values = serde_json::Deserializer::from_str(&text).into_iter::<&RawValue>();
    let values: Vec<&RawValue> = values.collect::<Result<_, _>>().ok()?;
    let flat = values.into_iter().flat_map(|value| match value.get() {
        list if list.starts_with('[') => raw_items(list, &[]),
        value => vec![value.to_owned()],
    });
    let read = flat.map(|text| Some((serde_json::from_str(&text).ok()?, text)));
    read.collect()
}

/// True for JSON that ends too early.
pub(crate) fn is_cut(text: &str) -> bool {
    // A line feed at the end may stand within a string.
    let text = text.trim();
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let error = values.find_map(Result::err);
    text.starts_with(['{', '[']) && error.is_some_and(|error| error.is_eof())
}

/// Returns the items of a list in a frame, each as the server wrote it; no items for a part that is no list.
pub(crate) fn raw_items(text: &str, path: &[Step<'_>]) -> Vec<String> {
    let items = raw(text, path).and_then(|list| {
        let items: Vec<&RawValue> = serde_json::from_str(&list).ok()?;
        Some(
            items
                .into_iter()
                .map(|item| item.get().to_owned())
                .collect(),
        )
    });
    items.unwrap_or_default()
}

/// Returns the part of a frame as the server wrote it, when it is an object or a list; `None` for other values, and for
/// frames that needed a repair.
pub(crate) fn raw(text: &str, path: &[Step<'_>]) -> Option<String> {
    let mut at: &RawValue = serde_json::from_str(text).ok()?;
    for step in path {
        at = match *step {
            Step::Key(key) => {
                let fields: HashMap<Cow<'_, str>, &RawValue> =
                    serde_json::from_str(at.get()).ok()?;
                fields.get(key)?
            }
            Step::At(index) => {
                let values: Vec<&RawValue> = serde_json::from_str(at.get()).ok()?;
                values.get(index)?
            }
        };
    }
    at.get()
        .starts_with(['{', '['])
        .then(|| at.get().to_owned())
}

/// Returns the text with U+FFFD for each escaped half of a surrogate pair, and `null` for numbers that JSON lacks.
fn repaired(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut repaired = String::new();
    let (mut kept, mut at, mut is_text) = (0, 0, false);
    while at < bytes.len() {
        let (length, repair) = match bytes[at] {
            b'"' => {
                is_text = !is_text;
                (1, None)
            }
            b'\\' if is_text => match (unit(text, at), unit(text, at + 6)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
                (Some(0xd800..=0xdfff), _) => (6, Some("\\ufffd")),
                _ => (2, None),
            },
            b'N' if !is_text && text[at..].starts_with("NaN") => (3, Some("null")),
            b'-' if !is_text && text[at..].starts_with("-Infinity") => (9, Some("null")),
            b'I' if !is_text && text[at..].starts_with("Infinity") => (8, Some("null")),
            _ => (1, None),
        };
        if let Some(repair) = repair {
            repaired.push_str(&text[kept..at]);
            repaired.push_str(repair);
            kept = at + length;
        }
        at += length;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(&text[kept..]);
    Cow::Owned(repaired)
}

/// Returns the UTF-16 unit of the escape `\uXXXX` at this byte.
fn unit(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn halves_of_a_pair_and_numbers_that_json_lacks_are_repaired() {
        for (text, expected) in [
            (r#"{"a":"x\ud83d"}"#, json!({"a": "x\u{fffd}"})),
            (r#"{"a":"\ude00y"}"#, json!({"a": "\u{fffd}y"})),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, json!({"a": "\u{fffd}😀"})),
            (r#"{"a":"\\ud83d"}"#, json!({"a": "\\ud83d"})),
            (
                r#"{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN \ud800"}"#,
                json!({"a": null, "b": [null, null], "c": "NaN \u{fffd}"}),
            ),
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
        for bad in ["", "{oops", "{\"a\":\"\\ud83d\"", "x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_body_that_is_no_stream_gives_its_values() {
        let both = [r#"{"a":1}"#, r#"{"b":2.50}"#];
        for body in [
            "{\"a\":1}\n{\"b\":2.50}\n",
            "[{\"a\":1},\n{\"b\":2.50}]",
            "{\"a\":1}{\"b\":2.50}",
        ] {
            let (values, texts): (Vec<_>, Vec<_>) = read_loose(body).unwrap().into_iter().unzip();
            assert_eq!(values, [json!({"a": 1}), json!({"b": 2.5})], "{body}");
            assert_eq!(texts, both, "{body}");
        }
        for (bad, is_json) in [
            ("<html>", false),
            ("[{\"a\":1},\n{\"b\n", true),
            ("{\"a\" 1}", false),
        ] {
            assert_eq!(read_loose(bad), None);
            assert_eq!(is_cut(bad), is_json, "{bad}");
        }
    }

    #[test]
    fn a_part_of_a_frame_keeps_its_digits() {
        let frame = r#"{"x":[0,{"args":{"n":12345678901234567890.10}}]}"#;
        let path = [Step::Key("x"), Step::At(1), Step::Key("args")];
        assert_eq!(
            raw(frame, &path).unwrap(),
            r#"{"n":12345678901234567890.10}"#
        );
        assert_eq!(raw(frame, &[Step::Key("y")]), None);
        assert_eq!(raw(frame, &[Step::Key("x"), Step::At(0)]), None);
    }

    proptest! {
        #[test]
        fn valid_json_is_read_as_it_is_and_nothing_panics(any in "\\PC{0,60}", value in "[\\\\\"a-z0-9é]{0,20}") {
            let _is_error = read(&any);
            let _is_none = (read_loose(&any), is_cut(&any));
            let text = json!({"a": value}).to_string();
            prop_assert_eq!(read(&text).unwrap(), json!({"a": value}));
        }
    }
}
