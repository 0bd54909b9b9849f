//! JSON schemas of tools and of answers, and the problems of values that do not fit.

use std::fmt::Write;

use jsonschema::{Draft, Validator};
use serde_json::Value;

use crate::cut;

/// The most problems in a message: enough for a model to correct its call.
const MAX_PROBLEMS: usize = 5;
/// The length of a problem, because the validator quotes the offending value, which may be large.
const MAX_PROBLEM_CHARS: usize = 240;

/// A compiled JSON schema of an object.
#[derive(Debug)]
pub struct Schema(Validator);

impl Schema {
    /// Compiles a schema. Fetches no schema from the network.
    ///
    /// # Errors
    ///
    /// The problem of the schema, for its author.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("the schema must have `\"type\": \"object\"` at the top".to_owned());
        }
        let validator = jsonschema::options().offline().build(schema);
        validator.map(Self).map_err(|error| describe(&error))
    }

    /// Compiles a schema of draft 2020-12, or else of draft 7 or draft 4: many tools have tuples and flags of older drafts,
    /// and do not name their draft.
    ///
    /// # Errors
    ///
    /// The problem of the schema in draft 2020-12, for its author.
    pub fn compile_any_draft(schema: &Value) -> Result<Self, String> {
        let newest = Self::compile(schema);
        let Err(_) = &newest else {
            return newest;
        };
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return newest;
        }
        let older = [Draft::Draft7, Draft::Draft4]
            .into_iter()
            .find_map(|draft| {
                let options = jsonschema::options().with_draft(draft);
                options.offline().build(schema).ok()
            });
        older.map_or(newest, |validator| Ok(Self(validator)))
    }

    /// Returns the problems of a value, for a model; `None` when the value fits.
    pub fn problems(&self, value: &Value) -> Option<String> {
        let mut problems = self.0.iter_errors(value);
        let named: Vec<String> = problems
            .by_ref()
            .take(MAX_PROBLEMS)
            .map(|error| describe(&error))
            .collect();
        if named.is_empty() {
            return None;
        }
        let mut sentence = named.join("; ");
        let more = problems.count();
        if more > 0 {
            // Writing to a string does not fail.
            let _ = write!(sentence, "; and {more} more");
        }
        Some(sentence)
    }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("at `{path}`: ")
    };
    cut(&format!("{prefix}{error}"), MAX_PROBLEM_CHARS)
}
