//! `[agents.NAME.output]`: the form of an agent's answers, JSON objects with or without a schema.

use std::{fs, path::PathBuf};

use everturn_models::OutputFormat;
use everturn_proto::{Json, turn::AgentOutput};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::checker::{Checker, is_json};

/// The name of a schema without a `name`.
const NAME: &str = "answer";
/// OpenAI's limit on the name of a schema.
const MAX_NAME_CHARS: usize = 64;
/// The limit exists because the schema is part of each request and of the agent's definition. Providers accept far
/// smaller schemas only.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputTable {
    schema: Option<Spanned<Value>>,
    schema_file: Option<Spanned<PathBuf>>,
    name: Option<Spanned<String>>,
    #[serde(default)]
    as_instruction: bool,
}

impl OutputTable {
    /// Returns the form of the agent's answers, or `None` after a mistake.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> Option<AgentOutput> {
        let schema = match (&self.schema, &self.schema_file) {
            (None, None) => return Some(self.of_schema(check, None)),
            (Some(written), None) => checked(check, written, in_file(written.get_ref())),
            (None, Some(path)) => {
                let file = check.file_beside(path);
                let text = fs::read_to_string(&file)
                    .map_err(|error| format!("{} cannot be read: {error}", file.display()));
                checked(check, path, text.and_then(|text| parsed(&text)))
            }
            (Some(written), Some(_)) => {
                check.wrong(
                    written,
                    "`output` has `schema` and also `schema_file`; remove either key",
                );
                None
            }
        };
        Some(self.of_schema(check, Some(schema?)))
    }

    fn of_schema(&self, check: &mut Checker<'_>, schema: Option<Json>) -> AgentOutput {
        AgentOutput {
            name: self.name(check),
            schema,
            as_instruction: self.as_instruction,
        }
    }

    fn name(&self, check: &mut Checker<'_>) -> String {
        let Some(name) = &self.name else {
            return NAME.to_owned();
        };
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let text = name.get_ref();
        if !(1..=MAX_NAME_CHARS).contains(&text.len()) || !text.bytes().all(is_fit) {
            check.wrong(
                name,
                format!(
                    "`name` of an output has 1 to {MAX_NAME_CHARS} letters, digits, `_` and `-`"
                ),
            );
        }
        text.clone()
    }
}

/// Checks a schema from the configuration file or from a file of its own, and reports a mistake at `at`.
fn checked<T>(
    check: &mut Checker<'_>,
    at: &Spanned<T>,
    schema: Result<Json, String>,
) -> Option<Json> {
    let usable = schema.and_then(|schema| {
        let bytes = schema.as_str().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!(
                "the schema has {bytes} bytes; the limit is {MAX_SCHEMA_BYTES}"
            ));
        }
        OutputFormat::check(&schema.to_value())?;
        Ok(schema)
    });
    if let Err(error) = &usable {
        check.wrong(
            at,
            format!("the schema of `output` cannot be used: {error}"),
        );
    }
    usable.ok()
}

/// Returns the schema that the configuration file has in `schema`: a table, or a string with JSON.
fn in_file(written: &Value) -> Result<Json, String> {
    match written {
        Value::String(text) => parsed(text),
        table if is_json(table) => Ok(Json::of(table)),
        _ => Err("the schema has a date or a number that JSON does not have".to_owned()),
    }
}

fn parsed(text: &str) -> Result<Json, String> {
    // The schema is serialized again, because its hash must not depend on the layout of the text.
    let schema: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    Ok(Json::of(&schema))
}
