//! Schemas of answers in the forms of providers: the strict form of OpenAI, in which every object names all its properties
//! as required and allows no others, and the closed form of Anthropic, in which an object only allows no others.

use serde_json::{Map, Value};

/// The keywords with a schema as their value.
const SCHEMA: [&str; 12] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];
/// The keywords with a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// The keywords with schemas by name.
const NAMED: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];
/// Annotations: keywords that restrict no value. OpenAI refuses every keyword beside `$ref`.
const ANNOTATIONS: [&str; 5] = ["title", "description", "default", "examples", "nullable"];

/// The form of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Strict,
    Closed,
}

/// Returns the schema in the strict form. Requiring a property that was optional narrows the answers, which OpenAI
/// demands.
pub(super) fn strict(schema: &Value) -> Value {
    formed(schema, Form::Strict)
}

/// Returns the schema in the closed form: an object that does not say otherwise allows no further properties.
pub(super) fn closed(schema: &Value) -> Value {
    formed(schema, Form::Closed)
}

fn formed(schema: &Value, form: Form) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let has_bare_ref = form == Form::Strict && fields.contains_key("$ref");
    let kept = fields
        .iter()
        .filter(|(key, _)| !(has_bare_ref && ANNOTATIONS.contains(&key.as_str())));
    let formed_field = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => named
                .iter()
                .map(|(name, schema)| (name.clone(), formed(schema, form)))
                .collect(),
            Value::Array(schemas) if LIST.contains(&key.as_str()) => {
                schemas.iter().map(|schema| formed(schema, form)).collect()
            }
            value if SCHEMA.contains(&key.as_str()) => formed(value, form),
            value => value.clone(),
        };
        (key.clone(), value)
    };
    let mut fields: Map<String, Value> = kept.map(formed_field).collect();
    if fields.get("type").is_some_and(|it| it == "object") || fields.contains_key("properties") {
        fields
            .entry("additionalProperties")
            .or_insert(Value::Bool(false));
        let names = fields.get("properties").and_then(Value::as_object);
        let names = names.map(|names| names.keys().cloned().map(Value::from).collect());
        if let Some(names) = names.filter(|_| form == Form::Strict) {
            fields.insert("required".to_owned(), names);
        }
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_object_names_all_its_properties() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {"type": "object", "properties": {"required": {"type": "string"}}}},
                "b": {"anyOf": [{"$ref": "#/$defs/c", "description": "x"}, {"type": "null"}]},
            },
            "required": ["a"],
            "$defs": {"c": {"type": "object", "properties": {}}},
        });
        assert_eq!(
            strict(&schema),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "array", "items": {
                        "type": "object",
                        "properties": {"required": {"type": "string"}},
                        "required": ["required"],
                        "additionalProperties": false,
                    }},
                    "b": {"anyOf": [{"$ref": "#/$defs/c"}, {"type": "null"}]},
                },
                "required": ["a", "b"],
                "additionalProperties": false,
                "$defs": {"c": {"type": "object", "properties": {}, "required": [], "additionalProperties": false}},
            })
        );
    }

    #[test]
    fn a_closed_object_allows_no_further_properties() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"$ref": "#/$defs/c", "description": "x"},
                "b": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["a"],
            "$defs": {"c": {"properties": {}}},
        });
        let mut expected = schema.clone();
        expected["additionalProperties"] = json!(false);
        expected["$defs"]["c"]["additionalProperties"] = json!(false);
        assert_eq!(closed(&schema), expected);
    }

    #[test]
    fn properties_keep_the_order_of_their_author() {
        let written = r#"{"type":"object","properties":{"reason":{},"certainty":{},"answer":{}}}"#;
        let schema: Value = serde_json::from_str(written).unwrap();
        let formed = strict(&schema);
        let expected = ["reason", "certainty", "answer"];
        assert_eq!(formed["required"], json!(expected));
        let properties = formed["properties"].as_object().unwrap();
        assert!(properties.keys().eq(expected), "{formed}");
    }
}
