//! A JSON value with its text kept exactly as written.

use std::{collections::BTreeMap, fmt};

use prost::Message;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, MapAccess, Visitor},
    ser::Error as _,
};
use serde_json::value::RawValue;

use crate::{limits::MAX_JSON_LEVELS, storable};

/// A JSON value kept as its text, because numbers beyond 2^53 and the order of keys must survive. The inputs and
/// results of tools are `Json` values. The empty text, protobuf's default, stands for `null`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Json {
    #[prost(string, tag = "1")]
    text: String,
}

impl Json {
    /// Keeps `text` as written when `text` is a single JSON value; otherwise returns an error.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        serde_json::from_str::<&RawValue>(&text)?;
        Ok(Self { text })
    }

    /// Makes the JSON of `value`; `null` when `value` has no JSON form (a map with keys that are not strings).
    pub fn of(value: &impl Serialize) -> Self {
        Self {
            text: serde_json::to_string(value).unwrap_or_default(),
        }
    }

    /// Returns the text of the value.
    pub fn as_str(&self) -> &str {
        if self.text.is_empty() {
            "null"
        } else {
            &self.text
        }
    }

    /// Reads the value as a `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// Returns the value with replacements for parts that the store does not take. U+FFFD replaces escapes of NUL and of
    /// lone surrogates. A string of equal characters replaces a number that is too long when written out (`1e131071`).
    /// `None` when the value needs no replacement.
    pub fn made_storable(&self) -> Option<Self> {
        storable::made_storable(self.as_str()).map(|text| Self { text })
    }

    /// Returns about how many bytes the value has in a reader that writes numbers out: `1e300` has 301 digits.
    pub fn stored_len(&self) -> usize {
        storable::stored_len(self.as_str())
    }

    /// True when the value nests arrays and objects deeper than many readers can follow ([`MAX_JSON_LEVELS`]).
    pub fn is_too_deep(&self) -> bool {
        levels(self.as_str()) > MAX_JSON_LEVELS
    }

    /// Returns the value in canonical form: without spaces, with the keys of objects in the order of their bytes, and
    /// with the fewest possible escapes in strings. Numbers stay as written.
    pub fn canonical(&self) -> String {
        let mut text = String::with_capacity(self.as_str().len());
        write_canonical(self.as_str(), &mut text);
        text
    }

    /// Returns the value with its canonical text ([`Self::canonical`]). The store keeps the arguments of a call as this
    /// text, and every hash, comparison, reader and tool gets the text from there.
    #[must_use]
    pub fn into_canonical(self) -> Self {
        Self {
            text: self.canonical(),
        }
    }

    /// True for the same value, in whatever notation: the canonical texts ([`Self::canonical`]) are equal.
    pub fn is_same_value(&self, other: &Self) -> bool {
        self.canonical() == other.canonical()
    }

    /// Returns a key that an object of the value has more than once; `None` without such a key. Readers of a repeated key
    /// disagree: some take the first value, some the last, and some take both. The key is as written in its canonical form,
    /// so `"\u0061"` repeats `"a"`. The keys of a value with too many levels ([`Self::is_too_deep`]) are unknown.
    pub fn repeated_key(&self) -> Option<String> {
        if self.is_too_deep() {
            return None;
        }
        repeated_key(self.as_str())
    }

    /// Returns a number that the tree of [`Self::to_value`] does not have as written; `None` without such a number. A
    /// number with more digits than 64 bits hold is another number in the tree, so a comparison with a limit may be wrong.
    pub fn inexact_number(&self) -> Option<&str> {
        storable::numbers(self.as_str()).find(|number| !is_exact(number))
    }

    /// Returns the value as a tree. Numbers beyond 64 bits become floats in the tree, while the text keeps them.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

/// Counts the deepest nesting of arrays and objects in a JSON text. The count is a loop and uses no stack for the
/// levels.
fn levels(json: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    let (mut is_in_string, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        if is_in_string {
            is_in_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => is_in_string = true,
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Appends the canonical form of a JSON value. The function parses a nested value again for every level around the
/// value; the parser allows 128 levels.
fn write_canonical(json: &str, text: &mut String) {
    let json = json.trim();
    let quoted = |value: &str| serde_json::to_string(value).unwrap_or_default();
    match json.as_bytes().first() {
        Some(b'{') => {
            let fields: BTreeMap<String, &RawValue> =
                serde_json::from_str(json).unwrap_or_default();
            text.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&quoted(&key));
                text.push(':');
                write_canonical(value.get(), text);
            }
            text.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            text.push('[');
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item.get(), text);
            }
            text.push(']');
        }
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(value) => text.push_str(&quoted(&value)),
            // A lone surrogate has no other form.
            Err(_) => text.push_str(json),
        },
        _ => text.push_str(json),
    }
}

/// Returns a key that an object in a JSON text has more than once. Like [`write_canonical`], the function parses a nested
/// value again for every level around the value.
fn repeated_key(json: &str) -> Option<String> {
    match json.trim_start().as_bytes().first() {
        Some(b'{') => {
            let Fields(mut fields) = serde_json::from_str(json).ok()?;
            let inner = fields
                .iter()
                .find_map(|(_, value)| repeated_key(value.get()));
            inner.or_else(|| {
                fields.sort_by(|(one, _), (other, _)| one.cmp(other));
                let mut pairs = fields.windows(2);
                let repeated = pairs.find(|pair| pair[0].0 == pair[1].0);
                repeated.map(|pair| pair[0].0.clone())
            })
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            items.into_iter().find_map(|item| repeated_key(item.get()))
        }
        _ => None,
    }
}

/// The fields of an object in their order, with repeated keys.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Taker;
        impl<'de> Visitor<'de> for Taker {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Taker)
    }
}

/// True when the number's text and the number in a tree are one number. A tree holds integers of 64 bits, and floats,
/// which are written with the fewest digits that tell the float from every other float.
fn is_exact(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    let Ok(float) = number.parse::<f64>() else {
        return false;
    };
    float.is_finite() && digits_of(&format!("{float:e}")) == digits_of(number)
}

/// Returns the sign, the digits without zeros at either end, and the power of ten of a number's last digit. Two texts of
/// one number have equal parts.
fn digits_of(number: &str) -> (bool, String, i64) {
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(i64::MAX / 2);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_negative = whole.starts_with('-');
    let all = format!("{}{fraction}", whole.trim_start_matches('-'));
    let significant = all.trim_end_matches('0');
    let trailing = i64::try_from(all.len() - significant.len()).unwrap_or(i64::MAX / 4);
    let behind_point = i64::try_from(fraction.len()).unwrap_or(i64::MAX / 4);
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return (false, String::new(), 0);
    }
    let power = exponent
        .saturating_sub(behind_point)
        .saturating_add(trailing);
    (is_negative, significant.to_owned(), power)
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.as_str())
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self {
            text: raw.get().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::{Json, levels};
    use crate::limits::MAX_JSON_LEVELS;

    #[test]
    fn keeps_large_numbers_and_key_order() {
        let text = r#"{"z":9007199254740993,"a":123456789012345678901234567890,"pi":3.10}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
    }

    #[test]
    fn the_canonical_form_does_not_depend_on_how_it_was_written() {
        let canonical = |text: &str| Json::parse(text).unwrap().canonical();
        let written =
            "{ \"b\" : [1.50, {\"y\":null,\"x\":\"\\u00e4\\/\"} ],\n\"a\":9007199254740993 }";
        let expected = r#"{"a":9007199254740993,"b":[1.50,{"x":"ä/","y":null}]}"#;
        assert_eq!(canonical(written), expected);
        assert_eq!(canonical(expected), expected);
        let deep = "[".repeat(120) + &"]".repeat(120);
        assert_eq!(canonical(&deep), deep);
    }

    #[test]
    fn a_repeated_key_is_found_at_every_level_and_in_every_notation() {
        let repeated = |text: &str| Json::parse(text).unwrap().repeated_key();
        for (text, key) in [
            (r#"{"amount":5000,"amount":1}"#, "amount"),
            (r#"{"a":1,"b":2,"\u0061":3}"#, "a"),
            (r#"{"a":[{"b":{"x":1,"y":2,"x":1}}]}"#, "x"),
            (r#"[[{"":1,"":2}]]"#, ""),
            (r#"{"c":1,"\ud83d\ude00":2,"😀":3}"#, "😀"),
        ] {
            assert_eq!(repeated(text).as_deref(), Some(key), "{text}");
        }
        for text in [
            "null",
            "[]",
            r#""{\"a\":1,\"a\":2}""#,
            r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#,
            r#"{"a":1,"A":2}"#,
        ] {
            assert_eq!(repeated(text), None, "{text}");
        }
        let deep = format!("{}{{\"a\":1,\"a\":2}}{}", "[".repeat(99), "]".repeat(99));
        assert_eq!(repeated(&deep).as_deref(), Some("a"));
    }

    #[test]
    fn a_tree_has_some_numbers_as_written() {
        let is_exact = |text: &str| Json::parse(text).unwrap().inexact_number().is_none();
        for exact in [
            "9007199254740993",
            "18446744073709551615",
            "-9223372036854775808",
            "[0, -0, 0.10, 1e2, 100.00, 1E-7, -1.5e+300, 5e-324]",
            r#"{"n":"12345678901234567890123","1e400":0.1}"#,
        ] {
            assert!(is_exact(exact), "{exact}");
        }
        for other in [
            "12345678901234567890123",
            "100.00000000000000000001",
            "99.99999999999999999999",
            "1e400",
            r#"{"a":[1,{"amount":1e-400}]}"#,
            "9007199254740993.0",
        ] {
            assert!(!is_exact(other), "{other}");
        }
    }

    #[test]
    fn default_is_null() {
        assert_eq!(serde_json::to_string(&Json::default()).unwrap(), "null");
    }

    #[test]
    fn refuses_what_is_not_json() {
        assert!(Json::parse("{").is_err());
        assert!(Json::parse("1 2").is_err());
    }

    #[test]
    fn what_is_deep_is_known_without_a_tree() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        for (levels, is_too_deep) in [
            (0, false),
            (MAX_JSON_LEVELS, false),
            (MAX_JSON_LEVELS + 1, true),
            (200_000, true),
        ] {
            let json = Json::parse(nested(levels)).unwrap();
            assert_eq!(json.is_too_deep(), is_too_deep, "{levels}");
        }
        // A payload of the engine holds the value a few levels down, and its reader gives up at 128.
        let wrapped = format!("{{\"a\":{{\"b\":{}}}}}", nested(MAX_JSON_LEVELS));
        assert!(serde_json::from_str::<Value>(&wrapped).is_ok());
    }

    proptest! {
        #[test]
        fn a_value_is_kept_to_the_letter_and_its_levels_are_those_of_its_tree(value in values()) {
            let text = value.to_string();
            let json = Json::parse(text.as_str()).unwrap();
            prop_assert_eq!(serde_json::to_string(&json).unwrap(), text.as_str());
            prop_assert_eq!(json.to_value(), value.clone());
            prop_assert_eq!(levels(&text), levels_of(&value), "{}", text);
        }

        #[test]
        fn any_text_is_a_value_or_is_refused(text in "\\PC{0,60}", json in "[\\[\\]{}\"\\\\:,0-9eE.tn -]{0,60}") {
            for text in [text, json] {
                let is_read = Json::parse(text.as_str()).map(|json| (json.is_too_deep(), json.to_value()));
                prop_assert_eq!(is_read.is_ok(), serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
            }
        }
    }

    fn levels_of(value: &Value) -> usize {
        match value {
            Value::Array(values) => 1 + values.iter().map(levels_of).max().unwrap_or(0),
            Value::Object(fields) => 1 + fields.values().map(levels_of).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Any value, with brackets and escapes in its strings and names.
    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
            r#"[\[\]{}"\\]{0,8}"#.prop_map(Into::into),
        ];
        leaf.prop_recursive(6, 40, 4, |inner| {
            let name = r#"[a"\\{\[]{0,3}"#;
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(name, inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }
}
