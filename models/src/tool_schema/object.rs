//! Folds an object with branches into one object.

use serde_json::{Map, Value, json};

use super::{
    flat::References,
    keywords::{self, Kind},
    union,
};

/// True for an object with properties of its own. Its branches are folded, because each branch would repeat the
/// properties.
pub(super) fn is_object_with(fields: &Map<String, Value>) -> bool {
    let kinds = keywords::named(fields);
    let may_be_object = kinds.is_empty() || kinds == [Kind::Object];
    may_be_object
        && fields
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|known| !known.is_empty())
}

/// Returns a single object schema that allows at least the objects of the given schema. With several branches, the object
/// has the properties of all branches, and needs only the properties that each branch needs. `None`: the schema allows no object.
pub(super) fn folded(
    references: References<'_>,
    fields: Map<String, Value>,
    open: &mut Vec<String>,
) -> Option<Map<String, Value>> {
    let mut fields = fields;
    let object = Object::of(references, &mut fields, open, 0)?;
    for name in ["enum", "const", "not", "nullable"] {
        fields.remove(name);
    }
    fields.insert("type".to_owned(), json!("object"));
    if !object.properties.is_empty() || fields.contains_key("properties") {
        fields.insert("properties".to_owned(), Value::Object(object.properties));
    }
    fields.insert("required".to_owned(), json!(object.required));
    // `additionalProperties` would refuse the properties of the branches.
    if object.has_branches {
        fields.remove("additionalProperties");
    }
    Some(fields)
}

/// Returns the names of needed properties. Draft 3 of JSON Schema has a flag in each property instead, which says
/// nothing to later drafts.
pub(super) fn required(fields: &Map<String, Value>, properties: &Map<String, Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for name in fields
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let is_known = name
            .as_str()
            .is_some_and(|name| properties.contains_key(name));
        if is_known && !kept.contains(name) {
            kept.push(name.clone());
        }
    }
    kept
}

/// The most levels of branches within branches. Branches below say nothing.
const MAX_LEVELS: usize = 8;

/// The properties of an object with its branches.
#[derive(Default)]
struct Object {
    properties: Map<String, Value>,
    required: Vec<String>,
    has_branches: bool,
}

impl Object {
    /// Reads a flat schema, and takes its branches; `None` when it allows no object.
    fn of(
        references: References<'_>,
        fields: &mut Map<String, Value>,
        open: &mut Vec<String>,
        level: usize,
    ) -> Option<Self> {
        let kinds = keywords::named(fields);
        if !kinds.is_empty() && !kinds.contains(&Kind::Object) {
            return None;
        }
        let properties = fields.get("properties").and_then(Value::as_object);
        let names = fields
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let mut object = Self {
            properties: properties.cloned().unwrap_or_default(),
            required: names.filter_map(Value::as_str).map(str::to_owned).collect(),
            has_branches: false,
        };
        let lists = ["anyOf", "oneOf"].map(|keyword| fields.remove(keyword));
        let lists = lists.iter().flatten().filter_map(Value::as_array);
        for branches in lists.filter(|branches| !branches.is_empty() && level < MAX_LEVELS) {
            let possible: Vec<Self> = branches
                .iter()
                .filter_map(|branch| {
                    let mut branch = references.flat(branch, open)?;
                    if union::is_never(&branch) {
                        return None;
                    }
                    Self::of(references, &mut branch, open, level + 1)
                })
                .collect();
            if possible.is_empty() {
                return None;
            }
            object.join_one_of(possible);
        }
        Some(object)
    }

    /// Adds the branches of an `anyOf` or `oneOf`.
    fn join_one_of(&mut self, branches: Vec<Self>) {
        let mut needed: Option<Vec<String>> = None;
        for branch in branches {
            self.has_branches = true;
            for (name, schema) in branch.properties {
                self.add(name, schema);
            }
            needed = Some(match needed {
                None => branch.required,
                Some(needed) => needed
                    .into_iter()
                    .filter(|name| branch.required.contains(name))
                    .collect(),
            });
        }
        for name in needed.unwrap_or_default() {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    /// Adds a property. A property with several schemas becomes an `anyOf` of the schemas. An empty schema adds nothing.
    fn add(&mut self, name: String, schema: Value) {
        let says_nothing = |schema: &Value| {
            *schema == json!(true) || schema.as_object().is_some_and(Map::is_empty)
        };
        match self.properties.get_mut(&name) {
            None => {
                self.properties.insert(name, schema);
            }
            Some(known) if *known == schema || says_nothing(&schema) => {}
            Some(known) if says_nothing(known) => *known = schema,
            Some(known) => match known.get_mut("anyOf").and_then(Value::as_array_mut) {
                Some(schemas) if schemas.contains(&schema) => {}
                Some(schemas) => schemas.push(schema),
                None => *known = json!({"anyOf": [known.take(), schema]}),
            },
        }
    }
}
