//! The registry: finds tools by name and checks arguments against their schemas.
//!
//! Schemas are compiled once, when a tool is registered; a schema that does not compile is refused there and
//! never met in the middle of a turn.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use everturn_proto::Json;
use jsonschema::Validator;
use serde_json::Value;

use super::{Tool, ToolSpec};

/// What providers take as the name of a tool.
const MAX_NAME_BYTES: usize = 64;
/// Problems named in one message: enough for a model to mend its call, and no more.
const MAX_PROBLEMS: usize = 5;
/// Length of one problem; the validator quotes the offending value, which may be large.
const MAX_PROBLEM_CHARS: usize = 240;
/// Tools named in a message about an unknown one.
const MAX_NAMES: usize = 30;

/// The tools of a worker, by name.
#[derive(Default, Clone)]
pub struct ToolRegistry {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    validator: Arc<Validator>,
}

/// An agent names a tool that is not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`; the tools are: {known}")]
pub struct UnknownTool {
    /// The name asked for.
    pub name: String,
    /// The names there are, separated by commas.
    pub known: String,
}

/// Why a tool was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// Providers would refuse it.
    #[error("a tool cannot be called `{0}`: use letters, digits, `_` and `-`, at most 64 of them")]
    InvalidName(String),
    /// The name is taken.
    #[error("there already is a tool `{0}`")]
    Duplicate(String),
    /// Its schema is not a JSON schema, or not one of an object.
    #[error("the schema of tool `{name}` cannot be used: {reason}")]
    InvalidSchema {
        /// The tool.
        name: String,
        /// What is wrong with the schema.
        reason: String,
    },
}

impl ToolRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// A registry of these tools.
    pub fn of(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, RegisterError> {
        let mut registry = Self::new();
        for tool in tools {
            registry.register(tool)?;
        }
        Ok(registry)
    }

    /// Adds a tool. Its name and schema are checked here.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let ToolSpec { name, parameters, .. } = tool.spec().clone();
        if !is_valid_name(&name) {
            return Err(RegisterError::InvalidName(name));
        }
        if self.entries.contains_key(&name) {
            return Err(RegisterError::Duplicate(name));
        }
        let validator = match compile(&parameters) {
            Ok(validator) => Arc::new(validator),
            Err(reason) => return Err(RegisterError::InvalidSchema { name, reason }),
        };
        self.entries.insert(name, Entry { tool, validator });
        Ok(())
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.entries.get(name).map(|entry| Arc::clone(&entry.tool))
    }

    /// The names of all tools, sorted.
    pub fn names(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// What a model is told about these tools, in the order given.
    pub fn specs<I>(&self, names: I) -> Result<Vec<ToolSpec>, UnknownTool>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let spec = |name: I::Item| {
            let entry = self.entries.get(name.as_ref()).ok_or_else(|| self.unknown(name.as_ref()))?;
            Ok(entry.tool.spec().clone())
        };
        names.into_iter().map(spec).collect()
    }

    /// Checks the arguments of a call against the tool's schema. The error is for the model, which may mend its
    /// call.
    pub fn validate(&self, name: &str, input: &Json) -> Result<(), String> {
        let entry = self.entries.get(name).ok_or_else(|| sentence(&self.unknown(name).to_string()))?;
        let value = input.to_value();
        if !value.is_object() {
            return Err(not_an_object(&value));
        }
        let mut problems = entry.validator.iter_errors(&value);
        let named: Vec<String> = problems.by_ref().take(MAX_PROBLEMS).map(|error| describe(&error)).collect();
        if named.is_empty() {
            return Ok(());
        }
        let more = problems.count();
        let mut message = format!("The arguments do not fit the schema of tool `{name}`: {}", named.join("; "));
        if more > 0 {
            // Writing to a string does not fail.
            let _ = write!(message, "; and {more} more");
        }
        message.push('.');
        Err(message)
    }

    fn unknown(&self, name: &str) -> UnknownTool {
        let mut known: Vec<&str> = self.entries.keys().map(String::as_str).take(MAX_NAMES).collect();
        if self.entries.len() > MAX_NAMES {
            known.push("…");
        }
        UnknownTool { name: cut(name, MAX_NAME_BYTES), known: known.join(", ") }
    }
}

/// True for a name that every provider takes.
fn is_valid_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Compiles a schema without fetching anything from anywhere.
fn compile(schema: &Value) -> Result<Validator, String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("it must have `\"type\": \"object\"` at the top".to_owned());
    }
    jsonschema::options().offline().build(schema).map_err(|error| describe(&error))
}

/// Arguments that are no object, by how that happens.
fn not_an_object(value: &Value) -> String {
    let what = match value {
        // The model client hands arguments on as a string when they are not JSON (FACTS, genai trap 5).
        Value::String(text) if text.trim_start().starts_with('{') => {
            "are not complete JSON: they were cut off before their end, or are malformed. Make the call again with \
             complete, and if needed shorter, arguments"
        }
        Value::String(text) if text.trim().is_empty() => "are empty. Give a JSON object",
        Value::String(_) => "are a string. Give a JSON object",
        Value::Null => "are missing. Give a JSON object",
        Value::Array(_) => "are an array. Give a JSON object",
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => "are a single value. Give a JSON object",
    };
    format!("The arguments {what}.")
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let place = if path.is_empty() { String::new() } else { format!("at `{path}`: ") };
    cut(&format!("{place}{error}"), MAX_PROBLEM_CHARS)
}

/// The text, or its beginning when it is longer than `max_chars`.
fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tools::{Effect, ToolContext, ToolError, ToolOutput};

    struct Fake(ToolSpec);

    #[async_trait]
    impl Tool for Fake {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        async fn run(&self, _: ToolContext, input: Json) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput { result: input, events: Vec::new() })
        }
    }

    fn fake(name: &str, parameters: Value) -> Arc<dyn Tool> {
        Arc::new(Fake(ToolSpec { name: name.into(), description: String::new(), parameters, effect: Effect::Read }))
    }

    fn registry() -> ToolRegistry {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
            "required": ["city"],
            "additionalProperties": false,
        });
        ToolRegistry::of([fake("weather", schema), fake("alarm", json!({"type": "object"}))]).unwrap()
    }

    fn validate(input: &str) -> Result<(), String> {
        registry().validate("weather", &Json::parse(input).unwrap())
    }

    #[test]
    fn names_are_checked() {
        for bad in ["", "a b", "ä", "a.b", &"x".repeat(65)] {
            let error = ToolRegistry::of([fake(bad, json!({"type": "object"}))]).err();
            assert_eq!(error, Some(RegisterError::InvalidName(bad.to_owned())));
        }
        assert!(ToolRegistry::of([fake(&"x".repeat(64), json!({"type": "object"}))]).is_ok());
        let twice = [fake("a-1_B", json!({"type": "object"})), fake("a-1_B", json!({"type": "object"}))];
        assert_eq!(ToolRegistry::of(twice).err(), Some(RegisterError::Duplicate("a-1_B".into())));
    }

    #[test]
    fn schemas_are_checked_when_registered() {
        for bad in [json!({"type": "string"}), json!(true), json!({"type": "object", "properties": {"a": {"type": 5}}})]
        {
            let error = ToolRegistry::of([fake("a", bad)]).err().unwrap();
            assert!(matches!(error, RegisterError::InvalidSchema { .. }), "{error}");
        }
        let remote = json!({"type": "object", "$ref": "https://example.com/schema.json"});
        assert!(ToolRegistry::of([fake("a", remote)]).is_err(), "nothing may be fetched");
    }

    #[test]
    fn specs_come_in_the_order_asked_for() {
        let specs = registry().specs(["weather", "alarm"]).unwrap();
        assert_eq!(specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["weather", "alarm"]);
        let error = registry().specs(&["weather".to_owned(), "rain".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "there is no tool `rain`; the tools are: alarm, weather");
        assert!(registry().get("weather").is_some() && registry().get("rain").is_none());
    }

    #[test]
    fn good_arguments_pass() {
        assert_eq!(validate(r#"{"city":"Oslo","days":9007199254740993}"#), Ok(()));
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
        assert!(validate(r#""{\"city\":\"Os""#).unwrap_err().contains("cut off"));
        assert!(validate(r#""""#).unwrap_err().contains("are empty"));
        assert!(validate("null").unwrap_err().contains("are missing"));
        assert!(validate("[1]").unwrap_err().contains("are an array"));
        assert!(validate("5").unwrap_err().contains("single value"));
    }

    #[test]
    fn an_unknown_tool_is_explained_to_the_model() {
        let message = registry().validate("rain", &Json::default()).unwrap_err();
        assert_eq!(message, "There is no tool `rain`; the tools are: alarm, weather.");
    }

    #[test]
    fn messages_are_bounded() {
        let long = format!(r#"{{"city":{{"a":"{}"}}}}"#, "x".repeat(100_000));
        assert!(validate(&long).unwrap_err().len() < 500);
        let many: serde_json::Map<String, Value> = (0..10_000).map(|i| (format!("k{i}"), json!(i))).collect();
        let message = registry().validate("weather", &Json::of(&many)).unwrap_err();
        assert!(message.len() < 2000, "{} bytes", message.len());
        assert!(registry().validate(&"n".repeat(100_000), &Json::default()).unwrap_err().len() < 500);
    }

    proptest! {
        #[test]
        fn any_json_is_accepted_or_explained(text in "\\PC{0,40}") {
            let json = Json::parse(text.clone()).unwrap_or_else(|_| Json::of(&text));
            if let Err(message) = registry().validate("weather", &json) {
                prop_assert!(message.len() < 2000 && message.ends_with('.'));
            }
        }
    }
}
