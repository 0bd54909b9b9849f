//! The properties of a tool's schema, and the words that may be their values.

use serde_json::Value;

use super::said::{self, Word};

/// Parts of a property's name that promise an identifier, like the number of an order or an address.
const IDENTIFIERS: [&str; 9] = [
    "id", "number", "code", "key", "date", "day", "no", "email", "url",
];
/// A property of a tool's schema.
pub(super) struct Property<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
    pub(super) is_required: bool,
}

/// Returns the properties: required properties first, in the order of the schema.
pub(super) fn properties(schema: &Value) -> Vec<Property<'_>> {
    let Some(of_schema) = schema["properties"].as_object() else {
        return Vec::new();
    };
    let required = schema["required"].as_array();
    let required: Vec<_> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let property = |name: &'_ str| of_schema.get_key_value(name);
    let first = required
        .iter()
        .filter_map(|name| property(name))
        .map(|found| (found, true));
    let others = of_schema
        .iter()
        .filter(|(name, _)| !required.contains(&name.as_str()));
    let others = others.map(|found| (found, false));
    let all = first.chain(others);
    all.map(|((name, schema), is_required)| Property {
        name,
        schema: present(schema),
        is_required,
    })
    .collect()
}

/// Returns the part of a schema that describes a value: `anyOf` with `null` describes a value that may be missing.
fn present(schema: &Value) -> &Value {
    let any = schema["anyOf"].as_array();
    let present = any.into_iter().flatten().find(|one| one["type"] != "null");
    present.unwrap_or(schema)
}

impl Property<'_> {
    /// Returns the word for the type.
    pub(super) fn kind(&self) -> &str {
        match &self.schema["type"] {
            Value::String(kind) => kind,
            Value::Array(kinds) => {
                let mut kinds = kinds.iter().filter_map(Value::as_str);
                kinds.find(|kind| *kind != "null").unwrap_or("string")
            }
            _ => "string",
        }
    }

    pub(super) fn is_identifier(&self) -> bool {
        said::terms(self.name)
            .iter()
            .chain(&[self.name.to_lowercase()])
            .any(|word| IDENTIFIERS.contains(&word.as_str()))
    }

    pub(super) fn takes_any_text(&self) -> bool {
        self.kind() == "string" && !self.is_identifier() && self.schema.get("enum").is_none()
    }

    /// Returns the word as a value of the property, if it has the type.
    pub(super) fn value_of(&self, word: &Word) -> Option<Value> {
        match self.kind() {
            "integer" => word
                .number()
                .filter(|number| !number.is_f64())
                .map(Value::Number),
            "number" => word.number().map(Value::Number),
            "string" => Some(word.text.clone().into()),
            _ => None,
        }
    }
}
