//! The fields of a JSON object, with the JSON of every field exactly as written.

use std::borrow::Cow;

use everturn_proto::{Json, event::Event};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The fields of an event's data. Old events lack some fields, newer events have more, and a field may hold any JSON.
/// Fields are therefore parsed one by one, and a bad field does not hide the rest.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(Name<'a>, &'a RawValue)>);

/// The name of a field. A name is copied only when it contains escapes.
#[derive(Debug, Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    /// Reads the fields of `json`. The result is empty when `json` is not an object.
    pub(crate) fn of(json: &'a Json) -> Self {
        serde_json::from_str(json.as_str()).unwrap_or_default()
    }

    /// Reads the fields of an event's data.
    pub(crate) fn of_event(event: &'a Event) -> Self {
        event.event_data.as_ref().map(Self::of).unwrap_or_default()
    }

    /// Parses the field as a `T`. Returns `None` when the field is missing, null or of another type.
    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str::<Option<T>>(self.raw(name)?)
            .ok()
            .flatten()
    }

    /// Returns the field's JSON. Among fields of equal name the last wins, as JSON readers commonly do.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .rev()
            .find(|(key, _)| key.0 == name)
            .map(|(_, value)| value.get())
    }

    /// Iterates over the fields in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (&*key.0, *value))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(Name<'de>, &'de RawValue)>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(InOrder).map(Fields)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there() {
        let json =
            Json::parse(r#"{"step":2,"name":"a","big":9007199254740993.0,"null":null,"step":3}"#)
                .unwrap();
        let fields = Fields::of(&json);
        assert_eq!(fields.get::<u32>("step"), Some(3));
        assert_eq!(fields.get::<String>("name").as_deref(), Some("a"));
        assert_eq!(fields.raw("big"), Some("9007199254740993.0"));
        assert_eq!(
            (
                fields.get::<u32>("name"),
                fields.get::<u32>("null"),
                fields.get::<u32>("none")
            ),
            (None, None, None)
        );
    }

    #[test]
    fn what_is_no_object_has_no_fields() {
        for text in ["null", "[1]", "3", "\"x\""] {
            assert_eq!(
                Fields::of(&Json::parse(text).unwrap()).iter().count(),
                0,
                "{text}"
            );
        }
    }
}
