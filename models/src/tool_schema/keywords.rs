//! The types of schemas, and the keywords that a provider takes for each type.

use serde_json::{Map, Value, json};

use crate::profile::ToolSchemas;

/// The most characters of the keywords that a description repeats.
const MAX_TOLD_CHARS: usize = 300;

/// A type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    String,
    Number,
    Integer,
    Boolean,
    Null,
    Object,
    Array,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::String,
        Self::Number,
        Self::Integer,
        Self::Boolean,
        Self::Null,
        Self::Object,
        Self::Array,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Null => "null",
            Self::Object => "object",
            Self::Array => "array",
        }
    }

    fn read(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name.to_lowercase())
    }

    fn has(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => {
                value.is_i64()
                    || value.is_u64()
                    || value.as_f64().is_some_and(|it| it.fract() == 0.0)
            }
            Self::Boolean => value.is_boolean(),
            Self::Null => value.is_null(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
        }
    }
}

/// Returns the types that a schema names; empty: any type, or none that is known.
pub(super) fn named(fields: &Map<String, Value>) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = match fields.get("type") {
        Some(Value::String(name)) => Kind::read(name).into_iter().collect(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .filter_map(Kind::read)
            .collect(),
        _ => Vec::new(),
    };
    // A word of OpenAPI 3.0.
    if fields.get("nullable") == Some(&json!(true)) && !kinds.is_empty() {
        kinds.push(Kind::Null);
    }
    let mut once: Vec<Kind> = Vec::new();
    for kind in kinds {
        if !once.contains(&kind) {
            once.push(kind);
        }
    }
    once
}

/// Returns the types in the schema's `type`. Without a `type`, the keywords of the schema tell the types.
pub(super) fn kinds(fields: &Map<String, Value>) -> Vec<Kind> {
    let named = named(fields);
    if !named.is_empty() {
        return named;
    }
    let has = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
    if let Some(choices) = choices(fields) {
        let of = [
            Kind::String,
            Kind::Integer,
            Kind::Number,
            Kind::Boolean,
            Kind::Null,
            Kind::Object,
            Kind::Array,
        ];
        let mut kinds = Vec::new();
        for choice in &choices {
            let kind = of.into_iter().find(|kind| kind.has(choice));
            kinds.extend(kind.filter(|kind| !kinds.contains(kind)));
        }
        kinds
    } else if has(&[
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
    ]) {
        vec![Kind::Object]
    } else if has(&[
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "uniqueItems",
    ]) {
        vec![Kind::Array]
    } else if has(&["pattern", "minLength", "maxLength"]) {
        vec![Kind::String]
    } else if has(&[
        "minimum",
        "maximum",
        "multipleOf",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]) {
        vec![Kind::Number]
    } else {
        Vec::new()
    }
}

/// Returns the allowed values; `None` without a list of values. An empty list says nothing.
fn choices(fields: &Map<String, Value>) -> Option<Vec<Value>> {
    if let Some(constant) = fields.get("const") {
        return Some(vec![constant.clone()]);
    }
    let listed = fields.get("enum")?.as_array()?;
    let mut choices: Vec<Value> = Vec::new();
    for choice in listed {
        if !choices.contains(choice) {
            choices.push(choice.clone());
        }
    }
    (!choices.is_empty()).then_some(choices)
}

/// True for a keyword that restricts no value.
pub(super) fn is_annotation(name: &str) -> bool {
    matches!(
        name,
        "description" | "title" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
    )
}

/// Returns the annotations of a schema that the provider takes.
pub(super) fn annotations(fields: &Map<String, Value>, form: ToolSchemas) -> Map<String, Value> {
    let is_text = |name: &&str| fields.get(*name).is_some_and(Value::is_string);
    let texts = ["title", "description"].into_iter().filter(is_text);
    let mut kept: Map<String, Value> = texts
        .map(|name| (name.to_owned(), fields[name].clone()))
        .collect();
    if form == ToolSchemas::Typed {
        let told = fields
            .get("default")
            .map(|value| ("default".to_owned(), value.clone()));
        tell(&mut kept, told.into_iter().collect());
        return kept;
    }
    if let Some(value) = fields.get("default") {
        kept.insert("default".to_owned(), value.clone());
    }
    if let Some(examples @ Value::Array(_)) = fields.get("examples") {
        kept.insert("examples".to_owned(), examples.clone());
    }
    kept
}

/// Returns the keywords of a schema of one type that the provider takes, without the schemas within.
pub(super) fn kept(
    fields: &Map<String, Value>,
    kind: Kind,
    form: ToolSchemas,
) -> Map<String, Value> {
    let mut kept: Map<String, Value> = [("type".to_owned(), json!(kind.as_str()))]
        .into_iter()
        .collect();
    kept.extend(annotations(fields, form));
    let (mut taken, mut told) = (Map::new(), Map::new());
    for name in of_kind(kind) {
        let Some(value) = fields.get(*name).filter(|value| is_valid(name, value)) else {
            continue;
        };
        let list = if form == ToolSchemas::Typed && !is_typed(name, value) {
            &mut told
        } else {
            &mut taken
        };
        list.insert((*name).to_owned(), value.clone());
    }
    for (least, most) in [
        ("minimum", "maximum"),
        ("minItems", "maxItems"),
        ("minLength", "maxLength"),
    ] {
        let number = |name: &str| taken.get(name).and_then(Value::as_f64);
        if number(least)
            .zip(number(most))
            .is_some_and(|(least, most)| least > most)
        {
            taken.remove(least);
            taken.remove(most);
        }
    }
    if let Some(mut choices) = choices(fields) {
        // A choice of another type belongs to another branch of the schema.
        choices.retain(|choice| kind.has(choice));
        let are_texts = choices
            .iter()
            .all(|it| it.as_str().is_some_and(|text| !text.is_empty()));
        if choices.is_empty() {
            // The author has most likely meant the items of a list.
        } else if form != ToolSchemas::Typed || are_texts {
            taken.insert("enum".to_owned(), Value::Array(choices));
        } else if kind != Kind::Null {
            told.insert("enum".to_owned(), Value::Array(choices));
        }
    }
    kept.extend(taken);
    tell(&mut kept, told);
    kept
}

/// The keywords about values of a type, beside those with schemas.
fn of_kind(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::String => &["format", "pattern", "minLength", "maxLength"],
        Kind::Number | Kind::Integer => &[
            "format",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ],
        Kind::Array => &["minItems", "maxItems", "uniqueItems"],
        Kind::Object => &["minProperties", "maxProperties"],
        Kind::Boolean | Kind::Null => &[],
    }
}

/// True for a value that a keyword may have in JSON Schema 2020-12. Draft 4 had flags where later drafts have numbers.
fn is_valid(name: &str, value: &Value) -> bool {
    match name {
        "format" => value.is_string(),
        "pattern" => value.as_str().is_some_and(is_plain_pattern),
        "uniqueItems" => value.is_boolean(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        _ => value.is_u64(),
    }
}

/// True for a pattern that every engine reads: without groups beyond `(…)` and `(?:…)`, and without the escapes that only
/// some engines know.
fn is_plain_pattern(pattern: &str) -> bool {
    let has_group = pattern
        .match_indices("(?")
        .any(|(at, _)| !pattern[at..].starts_with("(?:"));
    let escapes = [
        "\\p", "\\P", "\\A", "\\Z", "\\z", "\\G", "\\k", "\\x{", "[[:", "\\h", "\\R", "\\Q",
    ];
    !has_group && !escapes.iter().any(|escape| pattern.contains(escape))
}

/// True for a keyword that the providers with few keywords take.
fn is_typed(name: &str, value: &Value) -> bool {
    match name {
        "minItems" | "maxItems" => true,
        // Moonshot reads no number with an exponent.
        "minimum" | "maximum" => !value.to_string().contains(['e', 'E']),
        _ => false,
    }
}

/// Adds the keywords without support at the provider to the description. The model reads the keywords there.
fn tell(kept: &mut Map<String, Value>, told: Map<String, Value>) {
    if told.is_empty() {
        return;
    }
    let told = Value::Object(told).to_string();
    if told.chars().count() > MAX_TOLD_CHARS {
        return;
    }
    let before = kept
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if before.ends_with(&told) {
        return;
    }
    let description = format!("{before} {told}").trim().to_owned();
    kept.insert("description".to_owned(), json!(description));
}
