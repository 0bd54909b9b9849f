//! Makes the adapted schema, from the outermost schema to the schemas within.

use serde_json::{Map, Value, json};

use super::{
    flat::References,
    keywords::{self, Kind},
    object, union,
};
use crate::{profile::ToolSchemas, tool_rules::ToolRules};

/// The bounds of an adapted schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// How often a reference may lead into itself.
    repeats: usize,
    /// The most levels of schemas within schemas. A schema below allows any value.
    levels: usize,
    /// The most schemas. A tool with more schemas has more bytes than a request has room for.
    schemas: usize,
}

impl Bounds {
    /// The bounds, in the order in which they are tried until the schema is small enough. Providers refuse deep schemas:
    /// no schema of a real server is deeper than the first bound.
    pub(super) const TRIED: [Self; 6] = [
        Self::new(2, 16),
        Self::new(1, 16),
        Self::new(0, 12),
        Self::new(0, 8),
        Self::new(0, 5),
        Self::new(0, 3),
    ];

    const fn new(repeats: usize, levels: usize) -> Self {
        Self {
            repeats,
            levels,
            schemas: 4_000,
        }
    }
}

/// The schema has more schemas than the bounds allow.
#[derive(Debug)]
pub(super) struct TooMany;

/// The adapted schema; `None`: the schema allows no value.
pub(super) type Made = Result<Option<Value>, TooMany>;

/// Where a schema stands.
#[derive(Debug, Clone, Default)]
struct Within {
    /// The references that lead to the schema.
    open: Vec<String>,
    /// The number of schemas around the schema.
    level: usize,
}

impl Within {
    /// Returns where the schemas within a schema stand.
    fn deeper(&self) -> Self {
        Self {
            open: self.open.clone(),
            level: self.level + 1,
        }
    }
}

/// Makes one adapted schema.
pub(super) struct Maker<'a> {
    references: References<'a>,
    rules: ToolRules,
    bounds: Bounds,
    made: usize,
}

impl<'a> Maker<'a> {
    pub(super) fn new(root: &'a Value, rules: ToolRules, bounds: Bounds) -> Self {
        let repeats = bounds.repeats;
        Self {
            references: References { root, repeats },
            rules,
            bounds,
            made: 0,
        }
    }

    /// Returns the outermost schema, as one object: providers refuse `anyOf`, `oneOf`, `allOf`, `enum` and `not` there.
    pub(super) fn outermost(&mut self) -> Made {
        let mut within = Within::default();
        let root = self.references.root;
        let Some(fields) = self.references.flat(root, &mut within.open) else {
            return Ok(None);
        };
        let Some(object) = object::folded(self.references, fields, &mut within.open) else {
            return Ok(None);
        };
        let mut made = self.single(&object, Kind::Object, &within)?;
        made.entry("properties").or_insert_with(|| json!({}));
        Ok(Some(Value::Object(made)))
    }

    /// Returns the adapted form of a schema within.
    fn schema(&mut self, schema: &Value, mut within: Within) -> Made {
        self.made += 1;
        if self.made > self.bounds.schemas {
            return Err(TooMany);
        }
        let Some(mut fields) = self.references.flat(schema, &mut within.open) else {
            return Ok(None);
        };
        if within.level > self.bounds.levels {
            fields.retain(|name, _| name == "type" || name == "description");
        }
        if let Some(branches) = union::branches(&mut fields) {
            if !object::is_object_with(&fields) {
                return self.union(fields, &branches, &within);
            }
            fields.insert("anyOf".to_owned(), Value::Array(branches));
            let Some(folded) = object::folded(self.references, fields, &mut within.open) else {
                return Ok(None);
            };
            fields = folded;
        }
        self.of_kinds(fields, &within)
    }

    /// Returns a schema without branches: of one type, or a union of its types.
    fn of_kinds(&mut self, fields: Map<String, Value>, within: &Within) -> Made {
        let kinds = keywords::kinds(&fields);
        match kinds.as_slice() {
            [] => Ok(Some(self.any(&fields))),
            [kind] => Ok(Some(Value::Object(self.single(&fields, *kind, within)?))),
            kinds => {
                let branches: Vec<Value> = kinds
                    .iter()
                    .map(|kind| json!({"type": kind.as_str()}))
                    .collect();
                let mut fields = fields;
                for name in ["type", "nullable"] {
                    fields.remove(name);
                }
                self.union(fields, &branches, within)
            }
        }
    }

    /// Returns the union of the branches. Each branch gets the fields around the union, except the annotations.
    fn union(&mut self, around: Map<String, Value>, branches: &[Value], within: &Within) -> Made {
        let (mut union, shared) = union::split(around, self.rules.schemas);
        let mut made: Vec<Value> = Vec::new();
        for branch in branches {
            let mut within = within.deeper();
            let Some(mut branch) = self.references.flat(branch, &mut within.open) else {
                continue;
            };
            if union::is_never(&branch) || !union::is_possible(&branch, &shared) {
                continue;
            }
            for (name, value) in &shared {
                branch.entry(name).or_insert_with(|| value.clone());
            }
            let Some(branch) = self.schema(&Value::Object(branch), within)? else {
                continue;
            };
            for branch in union::lifted(branch) {
                if !made.contains(&branch) {
                    made.push(branch);
                }
            }
        }
        union::join_choices(&mut made);
        match made.len() {
            0 => Ok(None),
            1 => {
                let Value::Object(only) = made.remove(0) else {
                    return Ok(None);
                };
                for (name, value) in only {
                    union.entry(name).or_insert(value);
                }
                Ok(Some(Value::Object(union)))
            }
            _ => {
                union.insert("anyOf".to_owned(), Value::Array(made));
                Ok(Some(Value::Object(union)))
            }
        }
    }

    /// Returns a schema of one type, with the keywords that the provider takes.
    fn single(
        &mut self,
        fields: &Map<String, Value>,
        kind: Kind,
        within: &Within,
    ) -> Result<Map<String, Value>, TooMany> {
        let mut made = keywords::kept(fields, kind, self.rules.schemas);
        match kind {
            Kind::Object => self.properties(fields, &mut made, within)?,
            Kind::Array => {
                let items = self.items(fields, within)?;
                made.insert("items".to_owned(), items);
            }
            _ => {}
        }
        Ok(made)
    }

    fn properties(
        &mut self,
        fields: &Map<String, Value>,
        made: &mut Map<String, Value>,
        within: &Within,
    ) -> Result<(), TooMany> {
        let known = fields.get("properties").and_then(Value::as_object);
        let mut properties = Map::new();
        for (name, schema) in known.into_iter().flatten() {
            // A property that allows no value must be absent.
            if let Some(schema) = self.schema(schema, within.deeper())? {
                properties.insert(name.clone(), schema);
            }
        }
        let required = object::required(fields, &properties);
        if known.is_some() {
            made.insert("properties".to_owned(), Value::Object(properties));
        }
        if !required.is_empty() {
            made.insert("required".to_owned(), Value::Array(required));
        }
        // Other keywords allow further properties, and no provider reads them.
        let has_others = ["patternProperties", "unevaluatedProperties"]
            .iter()
            .any(|name| fields.contains_key(*name));
        match fields.get("additionalProperties") {
            Some(Value::Bool(false)) if has_others => {}
            Some(Value::Bool(allowed)) => {
                made.insert("additionalProperties".to_owned(), json!(allowed));
            }
            Some(schema @ Value::Object(_)) if !has_others => {
                let schema = self
                    .schema(schema, within.deeper())?
                    .unwrap_or(json!(false));
                let says_nothing = schema.as_object().is_some_and(Map::is_empty);
                let schema = if says_nothing { json!(true) } else { schema };
                made.insert("additionalProperties".to_owned(), schema);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the schema of a list's items. A tuple becomes a list of its items' schemas.
    fn items(&mut self, fields: &Map<String, Value>, within: &Within) -> Result<Value, TooMany> {
        let tuple = fields.get("prefixItems").and_then(Value::as_array);
        let items = fields.get("items");
        let tuple = tuple.or_else(|| items.and_then(Value::as_array));
        let schema = match (tuple, items) {
            (Some(tuple), _) if !tuple.is_empty() => json!({"anyOf": tuple}),
            (None, Some(schema @ Value::Object(_))) => schema.clone(),
            _ => json!({}),
        };
        let made = self.schema(&schema, within.deeper())?;
        Ok(made.unwrap_or_else(|| self.any(&Map::new())))
    }

    /// Returns a schema that allows any value.
    fn any(&self, fields: &Map<String, Value>) -> Value {
        let mut made = keywords::annotations(fields, self.rules.schemas);
        if self.rules.schemas == ToolSchemas::Typed {
            let kinds = ["string", "number", "boolean", "null", "object"];
            let mut branches: Vec<Value> = kinds.iter().map(|kind| json!({"type": kind})).collect();
            branches.push(json!({"type": "array", "items": {"anyOf": branches}}));
            made.insert("anyOf".to_owned(), Value::Array(branches));
        }
        Value::Object(made)
    }
}
