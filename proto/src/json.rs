//! A JSON value that is kept exactly as it was written.

use prost::Message;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, ser::Error as _,
};
use serde_json::value::RawValue;

use crate::storable;

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

    /// Returns the value with what the store cannot hold replaced: escapes of NUL and of lone surrogates by U+FFFD, and
    /// numbers that are too long when they are written out (`1e131071`) by strings of the same characters. `None` when
    /// there is nothing of the kind.
    pub fn made_storable(&self) -> Option<Self> {
        storable::made_storable(self.as_str()).map(|text| Self { text })
    }

    /// Returns about how many bytes the value has when the store gives it back, which writes numbers out: `1e300` comes
    /// back with 301 digits.
    pub fn stored_len(&self) -> usize {
        storable::stored_len(self.as_str())
    }

    /// Returns the value as a tree. Numbers beyond 64 bits become floats in it, while the text keeps them.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
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
    fn refuses_what_is_not_json() {
        assert!(Json::parse("{").is_err());
        assert!(Json::parse("1 2").is_err());
    }
}
