//! The demands of providers on the tools of a request: their schemas, and the names in them.
//!
//! Every demand is a provider's documented rule, or the text of a refusal in a public report. The names of the pages:
//!
//! - OpenAI: "Function calling" (guide) and "Create chat completion" (reference)
//! - Anthropic: "Tool use: define tools", and "Self-hosted sandboxes", which lists what the API rejects in `input_schema`
//! - Gemini: "FunctionDeclaration" and "Schema" (references of the Gemini API and of Vertex AI)
//! - Moonshot: "Tool Use" (Kimi API), and "walle and JSON Schema Draft 2020-12" (the validator's own page)
//! - Mistral: "Function calling"

use everturn_untrusted::Schema;
use serde_json::Value;

use super::found::{Problems, list};

/// A provider with demands on the schemas of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaReader {
    /// OpenAI and Azure, without strict mode.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Gemini and Vertex AI.
    Gemini,
    /// Moonshot, which is strict by default.
    Moonshot,
    /// Mistral.
    Mistral,
}

/// The keywords that combine schemas.
const COMBINING: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];
/// The keywords of Gemini's "Schema".
const GEMINI: [&str; 14] = [
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "properties",
    "additionalProperties",
    "required",
];
/// The keywords of Moonshot's page, with a check mark, that no reference needs.
const MOONSHOT: [&str; 15] = [
    "type",
    "title",
    "description",
    "default",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "properties",
    "additionalProperties",
    "required",
    "minLength",
];
/// The names that Moonshot refuses for properties.
const MOONSHOT_NAMES: [&str; 5] = ["$defs", "$ref", "anyOf", "required", "additionalProperties"];
/// The most levels of schemas that a provider reads. No page gives a number; Gemini's reports begin above 20.
const MAX_LEVELS: usize = 20;

impl SchemaReader {
    /// Every provider.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Gemini,
        Self::Moonshot,
        Self::Mistral,
    ];

    /// Returns the reasons for which the provider would refuse a tool. Empty: the provider takes the tool.
    pub fn problems(self, name: &str, schema: &Value) -> Vec<String> {
        let mut found = Problems::default();
        found.unless(self.is_name(name), || format!("the name {name}"));
        if let Err(reason) = Schema::compile(schema) {
            found.unless(false, || format!("no schema of draft 2020-12: {reason}"));
        }
        found.unless(schema["type"] == "object", || {
            format!("outermost: the type {}", schema["type"])
        });
        for keyword in COMBINING
            .iter()
            .filter(|keyword| schema.get(**keyword).is_some())
        {
            found.unless(self == Self::Mistral, || format!("outermost: {keyword}"));
        }
        let needs_properties = matches!(self, Self::OpenAi | Self::Moonshot);
        found.unless(
            !needs_properties || schema["properties"].is_object(),
            || "outermost: object schema missing properties".to_owned(),
        );
        self.check(&mut found, "", schema, 0);
        found.into_vec()
    }

    fn is_name(self, name: &str) -> bool {
        let is_word = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        let begins = name
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        let least = if self == Self::Moonshot { 3 } else { 1 };
        let needs_letter = matches!(self, Self::Gemini | Self::Moonshot);
        is_word && (least..=64).contains(&name.len()) && (begins || !needs_letter)
    }

    fn is_property(self, name: &str) -> bool {
        let is_short = (1..=64).contains(&name.len());
        let all = |fits: fn(u8) -> bool| is_short && name.bytes().all(fits);
        match self {
            Self::OpenAi | Self::Mistral => !name.is_empty(),
            Self::Anthropic => all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)),
            Self::Gemini => {
                all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                    && !name.as_bytes()[0].is_ascii_digit()
            }
            Self::Moonshot => !name.is_empty() && !MOONSHOT_NAMES.contains(&name),
        }
    }

    fn check(self, found: &mut Problems, at: &str, schema: &Value, level: usize) {
        found.unless(level <= MAX_LEVELS, || {
            format!("{at}: more than {MAX_LEVELS} levels")
        });
        let Some(fields) = schema.as_object() else {
            return found.unless(false, || format!("{at}: {schema}"));
        };
        if level > MAX_LEVELS {
            return;
        }
        self.keywords(found, at, schema);
        let properties = fields.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            found.unless(self.is_property(name), || {
                format!("{at}: the property name {name:?}")
            });
            self.check(found, &format!("{at}/{name}"), schema, level + 1);
        }
        for name in list(&schema["required"]) {
            let is_known = name
                .as_str()
                .is_some_and(|name| properties.is_some_and(|known| known.contains_key(name)));
            let is_checked = matches!(self, Self::Gemini | Self::Moonshot);
            found.unless(is_known || !is_checked, || {
                format!("{at}: required {name} is no property")
            });
        }
        if let Some(items) = fields.get("items") {
            self.check(found, &format!("{at}/items"), items, level + 1);
        }
        if let Some(further @ Value::Object(_)) = fields.get("additionalProperties") {
            self.check(found, &format!("{at}/*"), further, level + 1);
        }
        for branch in list(&schema["anyOf"])
            .iter()
            .chain(list(&schema["oneOf"]))
            .chain(list(&schema["allOf"]))
        {
            self.check(found, &format!("{at}/anyOf"), branch, level + 1);
        }
    }

    /// Checks the keywords of one schema.
    fn keywords(self, found: &mut Problems, at: &str, schema: &Value) {
        let has = |name: &str| schema.get(name).is_some();
        found.unless(!has("$ref") || self == Self::Mistral, || {
            format!("{at}: $ref")
        });
        let is_list =
            schema["type"] == "array" || list(&schema["type"]).iter().any(|it| it == "array");
        found.unless(!is_list || schema["items"].is_object(), || {
            format!("{at}: array schema missing items")
        });
        found.unless(!has("enum") || !list(&schema["enum"]).is_empty(), || {
            format!("{at}: an empty enum")
        });
        if matches!(self, Self::OpenAi) {
            for choice in list(&schema["enum"]) {
                found.unless(is_of_type(choice, &schema["type"]), || {
                    format!(
                        "{at}: enum value {choice} does not validate against {}",
                        schema["type"]
                    )
                });
            }
        }
        let known: &[&str] = match self {
            Self::Gemini => &GEMINI,
            Self::Moonshot => &MOONSHOT,
            Self::OpenAi | Self::Anthropic | Self::Mistral => return,
        };
        for name in schema
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            found.unless(known.contains(&name.as_str()), || {
                format!("{at}: the keyword {name}")
            });
        }
        self.typed(found, at, schema);
    }

    /// Checks the types of one schema, for the providers that need a type.
    fn typed(self, found: &mut Problems, at: &str, schema: &Value) {
        let has = |name: &str| schema.get(name).is_some();
        found.unless(schema["type"].is_string() != has("anyOf"), || {
            format!("{at}: neither a type nor anyOf, or both")
        });
        if has("anyOf") {
            let beside = [
                "properties",
                "items",
                "enum",
                "required",
                "minimum",
                "default",
            ];
            found.unless(!beside.iter().any(|name| has(name)), || {
                format!("{at}: keywords beside anyOf")
            });
        }
        let is = |kind: &str| schema["type"] == kind;
        let is_object = is("object");
        for name in ["properties", "required", "additionalProperties"] {
            found.unless(is_object || !has(name), || {
                format!("{at}: {name}: only allowed for OBJECT type")
            });
        }
        for name in ["items", "minItems", "maxItems"] {
            found.unless(is("array") || !has(name), || {
                format!("{at}: {name}: only allowed for ARRAY type")
            });
        }
        for choice in list(&schema["enum"]) {
            let is_text = choice.as_str().is_some_and(|text| !text.is_empty());
            found.unless(is("string") && is_text, || {
                format!("{at}: enum: only allowed for STRING type, never empty")
            });
        }
        let is_format = schema["format"]
            .as_str()
            .is_none_or(|it| matches!(it, "date-time" | "enum"));
        found.unless(is_format, || {
            format!("{at}: the format {}", schema["format"])
        });
        let empty = schema.get("items").and_then(Value::as_object);
        found.unless(empty.is_none_or(|items| !items.is_empty()), || {
            format!("{at}: empty items")
        });
        if self == Self::Moonshot {
            let bounds = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
            let is_ordered = !matches!(bounds, (Some(least), Some(most)) if least > most);
            found.unless(is_ordered, || format!("{at}: minimum above maximum"));
        }
    }
}

/// True for a value of the type; without a type, for any value.
fn is_of_type(value: &Value, kind: &Value) -> bool {
    let fits = |kind: &Value| match kind.as_str().unwrap_or_default() {
        "string" => value.is_string(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => false,
    };
    match kind {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(fits),
        kind => fits(kind),
    }
}
