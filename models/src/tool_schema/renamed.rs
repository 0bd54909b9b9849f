//! Property names that a provider refuses, and the way back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value};

use crate::{
    profile::{PropertyNames, ToolSchemas},
    tool_rules::ToolRules,
};

/// The longest name of a property.
const MAX_NAME_CHARS: usize = 64;
/// The most characters of a property's own name in its description.
const MAX_TOLD_CHARS: usize = 200;
/// The keywords that Moonshot refuses as names of properties.
const KEYWORDS: [&str; 3] = ["anyOf", "required", "additionalProperties"];

/// The tool's own names, by the names that the model sees. A name that the model sees has one own name in the whole
/// schema, and is no own name.
pub(super) type Names = BTreeMap<String, String>;

/// The changed names of a schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renamed {
    own: Names,
    shown: Names,
    /// The adapted schema, which tells where a name is a property's name. Other objects have the keys of data.
    schema: Arc<Value>,
}

/// The side of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The tool's own names.
    Own,
    /// The names that the model sees.
    Shown,
}

impl Renamed {
    pub(super) fn new(own: Names, schema: &Arc<Value>) -> Self {
        if own.is_empty() {
            return Self::default();
        }
        let shown = own.iter().map(|(shown, own)| (own.clone(), shown.clone()));
        Self {
            shown: shown.collect(),
            own,
            schema: Arc::clone(schema),
        }
    }

    /// True when no name was changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Returns a key on the other side, and the schemas of its value. `around` are the schemas of the object.
    pub(super) fn key<'a>(
        &'a self,
        around: &[&'a Value],
        key: &str,
        to: Side,
    ) -> (Option<&'a str>, Vec<&'a Value>) {
        let shown = self.shown.get(key).map(String::as_str);
        // A model may write an own name, too.
        let property = shown.unwrap_or(key);
        let (mut is_property, mut schemas) = (false, Vec::new());
        for schema in around {
            let known = schema
                .get("properties")
                .and_then(|known| known.get(property));
            is_property |= known.is_some();
            schemas.extend(known.or_else(|| schema.get("additionalProperties")));
        }
        let renamed = match to {
            Side::Shown => shown,
            Side::Own => self.own.get(key).map(String::as_str),
        };
        (renamed.filter(|_| is_property), branches(&schemas))
    }

    /// Returns the schemas of the arguments.
    pub(super) fn outermost(&self) -> Vec<&Value> {
        branches(&[&self.schema])
    }
}

/// Returns the schemas with the branches within them.
pub(super) fn branches<'a>(schemas: &[&'a Value]) -> Vec<&'a Value> {
    let mut all = Vec::new();
    for schema in schemas {
        all.push(*schema);
        let branches = schema.get("anyOf").and_then(Value::as_array);
        let branches: Vec<&Value> = branches.into_iter().flatten().collect();
        all.extend(self::branches(&branches));
    }
    all
}

/// Changes the names in a schema that the provider refuses.
pub(super) fn rename(schema: &mut Value, rules: ToolRules) -> Names {
    let mut known = BTreeSet::new();
    each_properties(schema, &mut |properties| {
        known.extend(properties.keys().cloned());
    });
    let mut names = Names::new();
    let mut shown = BTreeMap::new();
    for name in &known {
        if !is_fit(name, rules) {
            let fit = fit(name, rules, |name| {
                known.contains(name) || names.contains_key(name)
            });
            names.insert(fit.clone(), name.clone());
            shown.insert(name.clone(), fit);
        }
    }
    if !names.is_empty() {
        apply(schema, &shown);
    }
    names
}

/// Calls a function with the properties of each object in a schema.
fn each_properties(schema: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        visit(properties);
        properties
            .values()
            .for_each(|schema| each_properties(schema, visit));
    }
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let within = ["items", "additionalProperties"]
        .into_iter()
        .filter_map(|name| schema.get(name));
    for schema in within.chain(branches.into_iter().flatten()) {
        each_properties(schema, visit);
    }
}

fn apply(schema: &mut Value, shown: &BTreeMap<String, String>) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        let renamed = std::mem::take(properties)
            .into_iter()
            .map(|(name, mut schema)| {
                apply(&mut schema, shown);
                match shown.get(&name) {
                    None => (name, schema),
                    Some(shown) => {
                        describe(&mut schema, &name);
                        (shown.clone(), schema)
                    }
                }
            });
        *properties = renamed.collect();
    }
    for name in fields
        .get_mut("required")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(shown) = name.as_str().and_then(|name| shown.get(name)) {
            *name = Value::String(shown.clone());
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(name) {
            apply(schema, shown);
        }
    }
    for schema in fields
        .get_mut("anyOf")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        apply(schema, shown);
    }
}

/// Puts a property's own name, which tells its meaning, before the description.
fn describe(schema: &mut Value, name: &str) {
    if let Some(fields) = schema.as_object_mut() {
        let name: String = name.chars().take(MAX_TOLD_CHARS).collect();
        let description = match fields.get("description").and_then(Value::as_str) {
            Some(description) => format!("{name}: {description}"),
            None => name,
        };
        fields.insert("description".to_owned(), description.into());
    }
}

fn is_fit(name: &str, rules: ToolRules) -> bool {
    let is_keyword = rules.schemas == ToolSchemas::Typed && KEYWORDS.contains(&name);
    let is_short = (1..=MAX_NAME_CHARS).contains(&name.len());
    !is_keyword
        && match rules.property_names {
            PropertyNames::Any => !name.is_empty(),
            PropertyNames::Words => is_short && name.chars().all(|c| is_of_word(c, rules)),
            PropertyNames::Identifiers => {
                let is_digit = name.starts_with(|first: char| first.is_ascii_digit());
                is_short && !is_digit && name.chars().all(|c| is_of_word(c, rules))
            }
        }
}

fn is_of_word(c: char, rules: ToolRules) -> bool {
    match rules.property_names {
        PropertyNames::Any => true,
        PropertyNames::Words => c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'),
        PropertyNames::Identifiers => c.is_ascii_alphanumeric() || c == '_',
    }
}

/// Returns a name for the provider that no other property has.
fn fit(name: &str, rules: ToolRules, is_taken: impl Fn(&str) -> bool) -> String {
    let room = MAX_NAME_CHARS - "_1000".len();
    let letters = name.chars().take(room);
    let mut fit: String = letters
        .map(|c| if is_of_word(c, rules) { c } else { '_' })
        .collect();
    let needs_letter = fit.is_empty() || !is_fit(&fit, rules);
    if needs_letter {
        fit.insert(0, '_');
    }
    let mut further = (2_u32..).map(|number| format!("{fit}_{number}"));
    let mut next = fit.clone();
    while is_taken(&next) {
        next = further.next().unwrap_or_default();
    }
    next
}
