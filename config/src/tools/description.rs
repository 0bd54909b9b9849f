//! The parts of a tool that the runtime and a model need to know: its description, the schema of its input, and its
//! effect.

use everturn_proto::Json;
use everturn_tools::{Effect, ToolSpec};
use serde_json::Value;
use toml::Spanned;

use crate::{
    checker::Checker,
    forms::{OneOf, Text, Words, Written},
};

/// `effect = …` of a tool.
pub(super) type WrittenEffect = Written<OneOf<Effect>>;

impl Words for Effect {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("read", Self::Read),
        ("idempotent", Self::Idempotent),
        ("once", Self::Once),
    ];
}

/// Returns the specification of a tool that runs elsewhere. Its effect is `once` unless the table sets another effect.
pub(super) fn checked_spec(
    check: &mut Checker<'_>,
    name: &Spanned<String>,
    description: &Written<Text>,
    input: &toml::Table,
    effect: Option<&WrittenEffect>,
) -> ToolSpec {
    ToolSpec {
        name: name.get_ref().clone(),
        description: check.value(description).unwrap_or_default(),
        parameters: checked_schema(check, name, Json::of(input).to_value()),
        effect: check.value_or(effect, Effect::Once),
        is_inline: false,
    }
}

/// Checks the schema of a tool's input. An input is always an object.
pub(super) fn checked_schema<T>(
    check: &mut Checker<'_>,
    at: &Spanned<T>,
    mut schema: Value,
) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.entry("type").or_insert_with(|| "object".into());
    }
    if let Err(error) = jsonschema::options().offline().build(&schema) {
        check.wrong(
            at,
            format!("the `input` of this tool is not a JSON schema: {error}"),
        );
    }
    schema
}
