//! Payloads that people type.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

/// A payload that may not be what it should be.
///
/// A workflow input or signal that does not decode would fail the workflow task, which the engine then retries
/// for ever. Decoding into `Lenient` always succeeds, so that the workflow can say what is wrong and end
/// (input) or go on (signal).
#[derive(Debug, Clone)]
pub struct Lenient<T>(pub Result<T, String>);

impl<T> From<T> for Lenient<T> {
    fn from(value: T) -> Self {
        Self(Ok(value))
    }
}

impl<T: Serialize> Serialize for Lenient<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(value) => value.serialize(serializer),
            Err(_) => serializer.serialize_unit(),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(
            serde_json::from_value(value).map_err(|error| error.to_string()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::Lenient;
    use crate::turn::Submit;

    #[test]
    fn says_what_is_wrong_instead_of_failing() {
        let wrong: Lenient<Submit> = serde_json::from_str(r#"{"content":5}"#).unwrap();
        assert!(wrong.0.unwrap_err().contains("string"));
        let array: Lenient<Submit> = serde_json::from_str("[1]").unwrap();
        assert!(array.0.is_err());
    }

    #[test]
    fn ignores_unknown_fields_and_defaults_missing_ones() {
        let submit: Lenient<Submit> =
            serde_json::from_str(r#"{"content":"hi","later":true}"#).unwrap();
        let submit = submit.0.unwrap();
        assert_eq!(
            (submit.content.as_deref(), submit.on_busy.as_deref()),
            (Some("hi"), None)
        );
    }
}
