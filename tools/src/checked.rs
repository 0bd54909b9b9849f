//! A tool with a name and schema checked at registration, so that a bad definition fails no turn.

use std::sync::Arc;

use everturn_proto::{Json, TitleTemplate};
use everturn_untrusted::Schema;
use serde_json::Value;

use crate::{
    names,
    tool::{Tool, ToolSpec},
};

/// A tool that can be offered and run.
#[derive(Clone)]
pub struct CheckedTool {
    tool: Arc<dyn Tool>,
    schema: Arc<Schema>,
}

/// The reason why a tool cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// Providers would refuse the name.
    #[error(
        "a tool cannot be called `{0}`: use letters, digits, `_` and `-`, at most 64 characters"
    )]
    InvalidName(String),
    /// The name is taken, or belongs to a source.
    #[error("a tool with the name `{0}` exists already")]
    Duplicate(String),
    /// The template of the title cannot be used.
    #[error("the title of tool `{name}` cannot be used: {reason}")]
    InvalidTitle {
        /// The name of the tool.
        name: String,
        /// The fault of the template.
        reason: String,
    },
    /// The schema is not a JSON schema, or not the schema of an object.
    #[error("the schema of tool `{name}` cannot be used: {reason}")]
    InvalidSchema {
        /// The name of the tool.
        name: String,
        /// The fault of the schema.
        reason: String,
    },
}

impl CheckedTool {
    /// Checks the tool's name and title, and compiles its schema. Fetches no schema from the network.
    pub fn new(tool: Arc<dyn Tool>) -> Result<Self, RegisterError> {
        let ToolSpec {
            name,
            parameters,
            title,
            ..
        } = tool.spec();
        if !names::is_valid(name) {
            return Err(RegisterError::InvalidName(name.clone()));
        }
        if let Some(Err(reason)) = title.as_deref().map(TitleTemplate::parse) {
            let name = name.clone();
            return Err(RegisterError::InvalidTitle { name, reason });
        }
        let schema = match Schema::compile_any_draft(parameters) {
            Ok(schema) => Arc::new(schema),
            Err(reason) => {
                return Err(RegisterError::InvalidSchema {
                    name: name.clone(),
                    reason,
                });
            }
        };
        Ok(Self { tool, schema })
    }

    /// Returns the tool.
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Wraps the tool into another tool with an identical definition.
    pub(super) fn with(&self, wrap: impl FnOnce(Arc<dyn Tool>) -> Arc<dyn Tool>) -> Self {
        Self {
            tool: wrap(Arc::clone(&self.tool)),
            schema: Arc::clone(&self.schema),
        }
    }

    /// Returns the definition of the tool.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// Checks the arguments of a call against the schema. The error is for the model, which may correct its call.
    pub fn validate(&self, input: &Json) -> Result<(), String> {
        check_input(&self.spec().name, &self.schema, input)
    }
}

/// Checks the arguments of a call of the tool `name` against the tool's schema. The error is for the model.
pub(crate) fn check_input(name: &str, schema: &Schema, input: &Json) -> Result<(), String> {
    if let Some(key) = input.repeated_key() {
        return Err(format!(
            "The arguments have the key `{key}` more than once in one object. Give each key once."
        ));
    }
    let value = input.to_value();
    if !value.is_object() {
        return Err(not_an_object(&value));
    }
    match schema.problems(&value) {
        None => Ok(()),
        Some(problems) => Err(format!(
            "The arguments do not fit the schema of tool `{name}`: {problems}."
        )),
    }
}

/// Returns the error for arguments that are not an object.
fn not_an_object(value: &Value) -> String {
    let what = match value {
        // The model client passes arguments that are not JSON as a string, for example after a cut.
        Value::String(text) if text.trim_start().starts_with('{') => {
            "are not complete JSON: the text was cut off before the end, or is malformed. Make the call again with \
             complete, and if needed shorter, arguments"
        }
        Value::String(text) if text.trim().is_empty() => "are empty. Give a JSON object",
        Value::String(_) => "are a string. Give a JSON object",
        Value::Null => "are missing. Give a JSON object",
        Value::Array(_) => "are an array. Give a JSON object",
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            "are a single value. Give a JSON object"
        }
    };
    format!("The arguments {what}.")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::fake;

    fn weather() -> CheckedTool {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
            "required": ["city"],
            "additionalProperties": false,
        });
        CheckedTool::new(fake("weather", schema)).unwrap()
    }

    fn validate(input: &str) -> Result<(), String> {
        weather().validate(&Json::parse(input).unwrap())
    }

    fn refusal(name: &str, schema: Value) -> RegisterError {
        CheckedTool::new(fake(name, schema)).err().unwrap()
    }

    #[test]
    fn names_are_checked() {
        for bad in ["", "a b", "ä", "a.b", &"x".repeat(65)] {
            assert_eq!(
                refusal(bad, json!({"type": "object"})),
                RegisterError::InvalidName(bad.to_owned())
            );
        }
        assert!(CheckedTool::new(fake(&"x".repeat(64), json!({"type": "object"}))).is_ok());
    }

    #[test]
    fn schemas_are_checked() {
        for bad in [
            json!({"type": "string"}),
            json!(true),
            json!({"type": "object", "properties": {"a": {"type": 5}}}),
        ] {
            let error = refusal("a", bad);
            assert!(
                matches!(error, RegisterError::InvalidSchema { .. }),
                "{error}"
            );
        }
        let remote = json!({"type": "object", "$ref": "https://example.com/schema.json"});
        assert!(
            CheckedTool::new(fake("a", remote)).is_err(),
            "nothing may be fetched"
        );
    }

    /// Without the older drafts, every tool with a tuple of draft 7 would be missing.
    #[test]
    fn schemas_of_older_drafts_are_read_as_their_authors_meant_them() {
        let schema = json!({"type": "object", "properties": {
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
        }});
        let tool = CheckedTool::new(fake("a", schema)).unwrap();
        let fits = |input: &str| tool.validate(&Json::parse(input).unwrap());
        assert_eq!(fits(r#"{"pair":["a",1]}"#), Ok(()));
        assert!(fits(r#"{"pair":[1,"a"]}"#).is_err());
        let flag = json!({"type": "object", "properties": {
            "ttl": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
        }});
        let tool = CheckedTool::new(fake("a", flag)).unwrap();
        assert!(
            tool.validate(&Json::parse(r#"{"ttl":0}"#).unwrap())
                .is_err()
        );
    }

    #[test]
    fn good_arguments_pass() {
        assert_eq!(
            validate(r#"{"city":"Oslo","days":9007199254740993}"#),
            Ok(())
        );
    }

    #[test]
    fn bad_arguments_are_explained() {
        let message = validate(r#"{"days":0,"town":"Oslo"}"#).unwrap_err();
        assert_eq!(
            message,
            "The arguments do not fit the schema of tool `weather`: at `/days`: 0 is less than the minimum of 1; \
             Additional properties are not allowed ('town' was unexpected); \"city\" is a required property."
        );
    }

    #[test]
    fn cut_off_arguments_are_named_as_such() {
        assert!(
            validate(r#""{\"city\":\"Os""#)
                .unwrap_err()
                .contains("cut off")
        );
        assert!(validate(r#""""#).unwrap_err().contains("are empty"));
        assert!(validate("null").unwrap_err().contains("are missing"));
        assert!(validate("[1]").unwrap_err().contains("are an array"));
        assert!(validate("5").unwrap_err().contains("single value"));
    }

    #[test]
    fn messages_are_bounded() {
        let long = format!(r#"{{"city":{{"a":"{}"}}}}"#, "x".repeat(100_000));
        assert!(validate(&long).unwrap_err().len() < 500);
        let many: serde_json::Map<String, Value> =
            (0..10_000).map(|i| (format!("k{i}"), json!(i))).collect();
        let message = weather().validate(&Json::of(&many)).unwrap_err();
        assert!(message.len() < 2000, "{} bytes", message.len());
    }

    proptest! {
        #[test]
        fn any_json_is_accepted_or_explained(text in "\\PC{0,40}") {
            let json = Json::parse(text.clone()).unwrap_or_else(|_| Json::of(&text));
            if let Err(message) = weather().validate(&json) {
                prop_assert!(message.len() < 2000 && message.ends_with('.'));
            }
        }
    }
}
