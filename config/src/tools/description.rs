//! The parts of a tool that the runtime and a model need to know: its description, the schema of its input, and its
//! effect.

use everturn_proto::Json;
use everturn_tools::{Effect, ToolSpec};
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use crate::checker::Checker;

/// `effect = …`. An unknown word is refused.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WrittenEffect {
    Read,
    Idempotent,
    Once,
}

impl From<WrittenEffect> for Effect {
    fn from(effect: WrittenEffect) -> Self {
        match effect {
            WrittenEffect::Read => Self::Read,
            WrittenEffect::Idempotent => Self::Idempotent,
            WrittenEffect::Once => Self::Once,
        }
    }
}

/// Returns the specification of a tool that runs elsewhere. Its effect is `once` unless the table sets another effect.
pub(super) fn checked_spec(
    check: &mut Checker<'_>,
    name: &Spanned<String>,
    description: &Spanned<String>,
    input: &toml::Table,
    effect: Option<WrittenEffect>,
) -> ToolSpec {
    ToolSpec {
        name: name.get_ref().clone(),
        description: checked_description(check, description),
        parameters: checked_schema(check, name, Json::of(input).to_value()),
        effect: effect.unwrap_or(WrittenEffect::Once).into(),
        is_inline: false,
    }
}

pub(super) fn checked_description(check: &mut Checker<'_>, text: &Spanned<String>) -> String {
    if text.get_ref().trim().is_empty() {
        check.wrong(
            text,
            "the model chooses a tool by `description`; the text must not be empty",
        );
    }
    text.get_ref().clone()
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
