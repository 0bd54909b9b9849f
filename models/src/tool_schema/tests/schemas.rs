//! Single rules, and any schema.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{SchemaReader, adapt, adapted, rules};
use crate::{profile::ToolSchemas, tool_rules::ToolRules};

fn of(reader: SchemaReader, property: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"a": property}});
    adapted(reader, &schema).unwrap().schema["properties"]["a"].clone()
}

#[test]
fn a_plain_schema_stays_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city", "minLength": 1, "default": "Oslo"},
            "days": {"type": "integer", "minimum": 1, "exclusiveMaximum": 8},
            "units": {"type": "string", "enum": ["metric", "imperial"]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    for reader in [
        SchemaReader::OpenAi,
        SchemaReader::Anthropic,
        SchemaReader::Mistral,
    ] {
        let adapted = adapted(reader, &schema).unwrap();
        assert_eq!(*adapted.schema, schema);
        assert!(adapted.renamed.is_empty());
    }
    let own = ToolRules {
        schemas: ToolSchemas::Own,
        ..rules(SchemaReader::Gemini)
    };
    let odd = json!({"type": "object", "anyOf": [{"$ref": "#"}], "properties": {"a b": true}});
    assert_eq!(*adapt(&odd, own).unwrap().schema, odd);
}

#[test]
fn branches_outermost_become_one_object() {
    let schema = json!({
        "type": "object",
        "oneOf": [
            {"properties": {"id": {"type": "string"}, "a": {"type": "integer"}}, "required": ["id", "a"]},
            {"properties": {"id": {"type": "string"}, "a": {"type": "string"}}, "required": ["id"], "additionalProperties": false},
            {"type": "string"},
        ],
        "additionalProperties": false,
    });
    assert_eq!(
        *adapted(SchemaReader::OpenAi, &schema).unwrap().schema,
        json!({
            "type": "object",
            "properties": {"id": {"type": "string"}, "a": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
            "required": ["id"],
        })
    );
}

#[test]
fn the_keywords_that_a_provider_does_not_take_are_told_in_words() {
    let property = json!({"type": "integer", "enum": [1, 2], "description": "Level."});
    assert_eq!(
        of(SchemaReader::Gemini, &property),
        json!({"type": "integer", "description": "Level. {\"enum\":[1,2]}"})
    );
    let property = json!({"type": "string", "format": "uri", "default": "x"});
    assert_eq!(
        of(SchemaReader::Moonshot, &property),
        json!({"type": "string", "description": "{\"default\":\"x\"} {\"format\":\"uri\"}"})
    );
    assert_eq!(of(SchemaReader::OpenAi, &property), property.clone());
}

#[test]
fn lists_tuples_and_types_are_mended() {
    for (written, expected) in [
        (
            json!({"type": "array"}),
            json!({"type": "array", "items": {}}),
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}, {"type": "number"}], "additionalItems": false}),
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}),
        ),
        (
            json!({"type": ["string", "null"], "minLength": 1, "description": "d"}),
            json!({"description": "d", "anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]}),
        ),
        (json!({"enum": []}), json!({})),
        (json!({"const": 1}), json!({"type": "integer", "enum": [1]})),
        (
            json!({"anyOf": [{"const": "a"}, {"const": "b"}]}),
            json!({"type": "string", "enum": ["a", "b"]}),
        ),
        (
            json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true}),
            json!({"type": "integer", "minimum": 0}),
        ),
        (
            json!({"type": "string", "required": true}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "string", "pattern": "^(?!x)"}),
            json!({"type": "string"}),
        ),
        (json!(true), json!({})),
    ] {
        assert_eq!(of(SchemaReader::OpenAi, &written), expected, "{written}");
    }
}

/// Schemas with the keywords of JSON Schema in any order and with any values.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!(null)),
        Just(json!({})),
        "object|array|string|null|x".prop_map(|name| json!({"type": name})),
        Just(json!({"enum": []})),
        Just(json!({"enum": ["", 1, null]})),
        Just(json!({"type": ["string", "null", "object"], "nullable": true})),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/$defs/a"})),
    ];
    let keywords = "properties|anyOf|oneOf|allOf|items|prefixItems|\\$defs|not|additionalProperties|required|patternProperties";
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let named = prop::collection::btree_map("\\PC{0,3}|a|b|a b|anyOf", inner.clone(), 0..4);
        let list = prop::collection::vec(inner.clone(), 0..3);
        (named, list, inner, keywords, any::<bool>()).prop_map(
            |(named, list, inner, keyword, is_typed)| {
                let mut schema = match keyword.as_str() {
                    "properties" | "$defs" | "patternProperties" => json!({keyword: named}),
                    "items" | "not" | "additionalProperties" => json!({keyword: inner}),
                    _ => json!({keyword: list}),
                };
                if is_typed {
                    schema["type"] = json!("object");
                }
                schema
            },
        )
    })
}

proptest! {
    #[test]
    fn any_schema_is_adapted_or_left_out(schema in schemas()) {
        for reader in SchemaReader::ALL {
            if let Ok(adapted) = adapted(reader, &schema) {
                let problems = reader.problems("tool", &adapted.schema);
                prop_assert!(problems.is_empty(), "{:?}: {:?}\n{}", reader, problems, adapted.schema);
            }
        }
    }
}
