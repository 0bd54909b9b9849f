//! An object that the user wrote: an input in place of the model's, or the fields of a form. The body of an answer with the
//! object.

use std::collections::BTreeMap;

use serde_json::{Map, Value, value::RawValue};

/// A JSON object, as the user wrote the object. A tree would round long numbers.
#[derive(Debug, Clone)]
pub(super) struct Edited(Box<RawValue>);

impl Edited {
    /// Reads a JSON object.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Map<String, Value>>(text)?;
        serde_json::from_str(text).map(Self)
    }
}

impl PartialEq for Edited {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// Returns the body of an answer, with the named object as the user wrote the object.
pub(super) fn body_of(
    fields: &Value,
    object: Option<(&str, Edited)>,
) -> BTreeMap<String, Box<RawValue>> {
    let fields = fields.as_object().into_iter().flatten();
    let raw = |value| serde_json::value::to_raw_value(value).unwrap_or_default();
    let mut body: BTreeMap<_, _> = fields
        .map(|(name, value)| (name.clone(), raw(value)))
        .collect();
    body.extend(object.map(|(name, Edited(object))| (name.to_owned(), object)));
    body
}

/// Returns the empty form of a schema: an object with the default of each property, or with an empty value of its type.
pub(super) fn blank(schema: &Value) -> String {
    let properties = schema["properties"].as_object();
    let blank = properties.into_iter().flatten().map(|(name, property)| {
        let value = property.get("default").cloned();
        (name.clone(), value.unwrap_or_else(|| empty(property)))
    });
    Value::Object(blank.collect()).to_string()
}

fn empty(property: &Value) -> Value {
    match property["type"].as_str() {
        Some("string") => property["enum"][0].as_str().unwrap_or_default().into(),
        Some("integer" | "number") => property["minimum"].as_i64().unwrap_or_default().into(),
        Some("boolean") => false.into(),
        Some("array") => Value::Array(Vec::new()),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_has_a_value_of_the_type_of_each_field() {
        let schema = json!({"properties": {
            "all": {"type": "boolean"}, "day": {"type": "string", "default": "Monday"},
            "kind": {"type": "string", "enum": ["a", "b"]}, "names": {"type": "array"},
            "number": {"type": "integer", "minimum": 1}, "odd": {},
        }});
        assert_eq!(
            blank(&schema),
            r#"{"all":false,"day":"Monday","kind":"a","names":[],"number":1,"odd":null}"#
        );
        assert_eq!(blank(&json!(true)), "{}");
    }
}
