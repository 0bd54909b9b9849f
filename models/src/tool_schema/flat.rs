//! Flattens a schema: replaces its reference by the schema behind it, and joins the schemas of `allOf`.
//!
//! Some providers refuse `$ref`, and no provider reads a reference without an end.

use serde_json::{Map, Value, json};

/// The fields of a flat schema: neither `$ref` nor `allOf` is left. `None`: the schema allows no value.
pub(super) type Flat = Option<Map<String, Value>>;

/// Replaces references to a schema within `root`.
#[derive(Clone, Copy)]
pub(super) struct References<'a> {
    pub(super) root: &'a Value,
    /// How often a reference may lead into itself. A schema that refers to itself is cut there.
    pub(super) repeats: usize,
}

impl References<'_> {
    /// Returns the flat form of a schema. `open` are the references that lead to the schema; the function adds the
    /// references that it follows.
    pub(super) fn flat(self, schema: &Value, open: &mut Vec<String>) -> Flat {
        let fields = match schema {
            Value::Bool(false) => return None,
            Value::Object(fields) => fields,
            // `true` allows any value. So does a value that is no schema.
            _ => return Some(Map::new()),
        };
        let own = fields
            .iter()
            .filter(|(name, value)| !is_followed(name, value));
        let mut flat: Map<String, Value> = own
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            join(&mut flat, self.behind(reference, open)?);
        }
        let parts = fields.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            let part = self.flat(part, open)?;
            join(&mut flat, part);
        }
        Some(flat)
    }

    fn behind(self, reference: &str, open: &mut Vec<String>) -> Flat {
        let Some(target) = target(self.root, reference) else {
            // The runtime checks the call against the tool's own schema.
            return Some(Map::new());
        };
        if open.iter().filter(|it| *it == reference).count() > self.repeats {
            let kind = target.get("type").cloned();
            let kind = kind.into_iter().map(|kind| ("type".to_owned(), kind));
            return Some(kind.collect());
        }
        open.push(reference.to_owned());
        self.flat(target, open)
    }
}

/// True for a field that the flat form replaces.
fn is_followed(name: &str, value: &Value) -> bool {
    name == "allOf" || name == "$ref" && value.is_string()
}

/// Adds the fields of a schema that holds, too. The fields of `flat` win.
pub(super) fn join(flat: &mut Map<String, Value>, other: Map<String, Value>) {
    let has_both = flat.contains_key("properties") && other.contains_key("properties");
    for (name, value) in other {
        match (name.as_str(), flat.get_mut(&name), value) {
            (_, None, value) => {
                flat.insert(name, value);
            }
            ("properties", Some(Value::Object(known)), Value::Object(further)) => {
                for (name, schema) in further {
                    known.entry(name).or_insert(schema);
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(further)) => {
                let new: Vec<Value> = further
                    .into_iter()
                    .filter(|it| !known.contains(it))
                    .collect();
                known.extend(new);
            }
            _ => {}
        }
    }
    // Each of the schemas refuses the properties of the other.
    if has_both && flat.get("additionalProperties") == Some(&json!(false)) {
        flat.remove("additionalProperties");
    }
}

/// Returns the schema to which a reference points, within the same schema.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    match reference.strip_prefix('#')? {
        "" => Some(root),
        pointer => root.pointer(pointer).or_else(|| {
            root.pointer(
                &pointer
                    .replace("%20", " ")
                    .replace("%24", "$")
                    .replace("%25", "%"),
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(schema: &Value, repeats: usize) -> Value {
        let references = References {
            root: schema,
            repeats,
        };
        let flat = references.flat(schema, &mut Vec::new());
        flat.map_or(json!(false), Value::Object)
    }

    #[test]
    fn a_reference_is_replaced_and_the_fields_beside_it_win() {
        let schema = json!({"$ref": "#/$defs/A", "description": "own", "$defs": {"A": {"type": "string", "description": "A"}}});
        let flat = flat(&schema, 0);
        assert_eq!(
            (&flat["type"], &flat["description"]),
            (&json!("string"), &json!("own"))
        );
        assert!(flat.get("$ref").is_none());
    }

    #[test]
    fn references_in_a_circle_end() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}], "type": "object"}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ] {
            assert!(flat(&schema, 2).is_object(), "{schema}");
        }
    }

    #[test]
    fn the_schemas_of_all_of_are_joined() {
        let part = |name: &str| json!({"properties": {name: {}}, "required": [name], "additionalProperties": false});
        assert_eq!(
            flat(&json!({"allOf": [part("a"), part("b")]}), 0),
            json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]})
        );
        assert_eq!(flat(&json!({"allOf": [part("a"), false]}), 0), json!(false));
    }
}
