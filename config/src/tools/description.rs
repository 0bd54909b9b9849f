//! The parts of a tool that the runtime, a model and people need to know: its description, the schema of its input, its
//! title and its effect.

use everturn_proto::{Json, TitleTemplate};
use everturn_tools::{Effect, ToolSpec};
use serde_json::Value;
use toml::Spanned;

use crate::{
    checker::Checker,
    forms::{Form, OneOf, Text, Words, Written},
};

/// `title = …` of a tool: the template of a call's title for people.
pub(super) type WrittenTitle = Written<Title>;

pub(super) struct Title;

impl Form for Title {
    type Toml = String;
    type Value = String;

    fn read(text: String) -> Result<String, String> {
        match TitleTemplate::parse(&text) {
            Ok(_) => Ok(text),
            Err(reason) => Err(format!("cannot be used: {reason}")),
        }
    }
}

/// Returns the template, and checks that every placeholder is an input. A schema without `properties` names no input, so
/// the placeholders stay unchecked.
pub(super) fn checked_title(
    check: &mut Checker<'_>,
    title: Option<&WrittenTitle>,
    schema: &Value,
) -> Option<String> {
    let title = title?;
    let text = check.value(title)?;
    let template = TitleTemplate::parse(&text).ok()?;
    if let Some(known) = schema["properties"].as_object() {
        for name in template.inputs().filter(|name| !known.contains_key(*name)) {
            check.wrong(&title.at, format!("`{{{name}}}` is no property of `input`"));
        }
    }
    Some(text)
}

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
    title: Option<&WrittenTitle>,
    effect: Option<&WrittenEffect>,
) -> ToolSpec {
    let parameters = checked_schema(check, name, Json::of(input).to_value());
    ToolSpec {
        name: name.get_ref().clone(),
        description: check.value(description).unwrap_or_default(),
        title: checked_title(check, title, &parameters),
        parameters,
        effect: check.value_or(effect, Effect::Once),
        is_inline: false,
    }
}

/// Checks the schema of a tool's input. An input is always an object.
pub(crate) fn checked_schema<T>(
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
