//! Property names that providers refuse, and their way back.

use everturn_proto::Json;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{SchemaReader, adapted};
use crate::tool_schema::{keys::Keys, renamed::Side};

#[test]
fn names_find_their_way_back_and_everything_else_stays_as_written() {
    let schema = json!({"type": "object", "properties": {
        "a b": {"type": "string"}, "a_b": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"größe": {}}, "required": ["größe"]}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"c d": {}}}},
    }, "required": ["a b"]});
    let adapted = adapted(SchemaReader::Anthropic, &schema).unwrap();
    assert_eq!(adapted.schema["required"], json!(["a_b_2"]));
    assert_eq!(adapted.schema["properties"]["a_b_2"]["description"], "a b");
    let shown = Json::parse(
        r#"{ "a_b_2" : 12345678901234567890123, "a_b":"a_b_2", "list":[{"gr__e":1.50}], "map":{"a_b_2":{"c_d":0}},"x":{"a_b_2":1}}"#,
    );
    let shown = shown.unwrap();
    let own = adapted.renamed.restored(&shown);
    assert_eq!(
        own.as_str(),
        r#"{ "a b" : 12345678901234567890123, "a_b":"a_b_2", "list":[{"größe":1.50}], "map":{"a_b_2":{"c d":0}},"x":{"a_b_2":1}}"#
    );
    assert_eq!(adapted.renamed.shown(&own), shown);
    // A cut call is a text.
    let cut = Json::of(&r#"{"a_b_2":"x","li"#);
    assert_eq!(
        adapted.renamed.restored(&cut),
        Json::of(&r#"{"a b":"x","li"#)
    );
}

/// Objects with any names, within objects, lists, maps and unions; and arguments that fit.
fn named() -> impl Strategy<Value = (Value, Value)> {
    let leaf = "\\PC{0,20}".prop_map(|text| (json!({"type": "string"}), json!(text)));
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = "\\PC{0,70}|a b|a_b|a_b_2|_|1|anyOf";
        let object = prop::collection::btree_map(name, inner.clone(), 0..5).prop_map(|fields| {
            let schemas: Map<_, _> = fields.iter().map(|(name, (schema, _))| (name.clone(), schema.clone())).collect();
            let values: Map<_, _> = fields.into_iter().map(|(name, (_, value))| (name, value)).collect();
            (json!({"type": "object", "properties": schemas, "additionalProperties": false}), Value::Object(values))
        });
        prop_oneof![
            4 => object.clone(),
            1 => inner.clone().prop_map(|(schema, value)| (json!({"type": "array", "items": schema}), json!([value.clone(), value]))),
            1 => ("\\PC{0,5}", inner.clone()).prop_map(|(key, (schema, value))| {
                (json!({"type": "object", "additionalProperties": schema}), json!({ key: value }))
            }),
            1 => (object, inner).prop_map(|((one, value), (other, _))| (json!({"anyOf": [one, other]}), value)),
        ]
    })
}

proptest! {
    #[test]
    fn any_names_find_their_way_back((schema, value) in named()) {
        let schema = json!({"type": "object", "properties": {"a b": schema}});
        let arguments = Json::of(&json!({"a b": value}));
        for reader in SchemaReader::ALL {
            let Ok(adapted) = adapted(reader, &schema) else { continue };
            let problems = reader.problems("tool", &adapted.schema);
            prop_assert!(problems.is_empty(), "{:?}: {:?}", reader, problems);
            let shown = adapted.renamed.shown(&arguments);
            let restored = adapted.renamed.restored(&shown);
            prop_assert_eq!(restored.as_str(), arguments.as_str(), "{:?} {}", reader, adapted.schema);
        }
    }

    /// The pieces of a stream say together what the whole text says.
    #[test]
    fn any_pieces_are_the_whole((schema, value) in named(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let schema = json!({"type": "object", "properties": {"a b": schema}});
        let adapted = adapted(SchemaReader::Gemini, &schema).unwrap();
        let shown = adapted.renamed.shown(&Json::of(&json!({"a b": value})));
        let text = shown.as_str();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).filter(|at| text.is_char_boundary(*at)).collect();
        cuts.sort_unstable();
        let mut keys = Keys::new(&adapted.renamed, Side::Own);
        let (mut heard, mut from) = (String::new(), 0);
        for cut in cuts.into_iter().chain([text.len()]) {
            heard.push_str(&keys.push(&text[from..cut]));
            from = cut;
        }
        heard.push_str(&keys.finish());
        let restored = adapted.renamed.restored(&shown);
        prop_assert_eq!(heard.as_str(), restored.as_str());
    }

    #[test]
    fn any_text_passes_the_reader_of_keys(text in "[\\[\\]{}\":,a\\\\ ]{0,40}") {
        let schema = json!({"type": "object", "properties": {"a ": {"type": "object", "properties": {"a,": {}}}}});
        let adapted = adapted(SchemaReader::Gemini, &schema).unwrap();
        let shown = Keys::rewritten(&adapted.renamed, Side::Shown, &text);
        prop_assert!(shown.len() <= 3 * text.len() + 8);
    }
}
