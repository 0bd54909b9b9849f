//! A JSON value that is kept exactly as it was written.

use prost::Message;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, ser::Error as _,
};
use serde_json::value::RawValue;

/// A JSON value kept as its text, so that numbers beyond 2^53 and the order of keys survive. Inputs and results of
/// tools are such values. The empty text, protobuf's default, stands for `null`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Json {
    #[prost(string, tag = "1")]
    text: String,
}

impl Json {
    /// Keeps `text` as it is written when it is one JSON value; else returns an error.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        serde_json::from_str::<&RawValue>(&text)?;
        Ok(Self { text })
    }

    /// Makes the JSON of `value`; `null` when it has no JSON form (a map with keys that are not strings).
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

    /// Returns the value with what PostgreSQL's JSONB cannot hold (escapes of NUL and of lone surrogates) replaced by
    /// U+FFFD; `None` when there is nothing of the kind.
    pub fn made_storable(&self) -> Option<Self> {
        let mut out = String::new();
        let mut rest = self.as_str();
        let mut is_changed = false;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = match (escaped_unit(rest), rest.get(6..).and_then(escaped_unit)) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
                (Some(0 | 0xD800..=0xDFFF), _) => {
                    is_changed = true;
                    out.push('\u{FFFD}');
                    rest = &rest[6..];
                    continue;
                }
                (Some(_), _) => 6,
                // A two-character escape; valid JSON has a character behind the backslash.
                (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            };
            out.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        out.push_str(rest);
        is_changed.then_some(Self { text: out })
    }

    /// Returns the value as a tree. Numbers beyond 64 bits become floats in it, while the text keeps them.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

/// Returns the UTF-16 unit of a `\uXXXX` at the start of `text`.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
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
    use super::Json;

    #[test]
    fn keeps_large_numbers_and_key_order() {
        let text = r#"{"z":9007199254740993,"a":123456789012345678901234567890,"pi":3.10}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
    }

    #[test]
    fn default_is_null() {
        assert_eq!(serde_json::to_string(&Json::default()).unwrap(), "null");
    }

    #[test]
    fn what_jsonb_cannot_hold_is_replaced() {
        let replaced = |text: &str| {
            Json::parse(text)
                .unwrap()
                .made_storable()
                .map(|json| json.as_str().to_owned())
        };
        for fine in [
            r#""plain""#,
            r#""\\u0000 is a backslash""#,
            r#""\ud83d\ude00""#,
            r#"{"a":"\n\"\\"}"#,
            "1e400",
        ] {
            assert_eq!(replaced(fine), None, "{fine}");
        }
        assert_eq!(replaced(r#""a\u0000b""#).unwrap(), "\"a\u{FFFD}b\"");
        assert_eq!(
            replaced(r#"{"\ud83d":"\ude00\ud83d\ude00"}"#).unwrap(),
            "{\"\u{FFFD}\":\"\u{FFFD}\\ud83d\\ude00\"}"
        );
        assert_eq!(replaced(r#""\\\u0000""#).unwrap(), "\"\\\\\u{FFFD}\"");
    }

    #[test]
    fn refuses_what_is_not_json() {
        assert!(Json::parse("{").is_err());
        assert!(Json::parse("1 2").is_err());
    }
}
