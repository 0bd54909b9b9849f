//! Tools in Rust: a name, a description, and a function from a typed input to a typed output.

use std::{future::Future, io, sync::Arc};

use async_trait::async_trait;
use everturn_proto::words::Effect;
use everturn_proto::{Json, limits::TOOL_RESULT_MAX_BYTES};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    context::ToolContext,
    error::ToolError,
    tool::{Tool, ToolSpec},
};

/// A tool with a typed input and a schema derived from the type. The model reads the doc comments of the fields.
/// `#[serde(deny_unknown_fields)]` refuses arguments that the model made up.
///
/// A typed tool runs on a separate thread, so the tool may compute or block. When the turn is cancelled or the time
/// is up, the future is dropped at the next await.
pub trait TypedTool: Send + Sync + 'static {
    /// The type of the arguments: a struct.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The type of the result: any type with a JSON form of at most 1 MiB.
    type Output: Serialize;

    /// The tool's name: at most 64 letters, digits, `_` and `-`.
    const NAME: &'static str;
    /// The purpose of the tool, for the model.
    const DESCRIPTION: &'static str;
    /// The template of a call's title for people, like `Search the web for {query}`. By default people see the name.
    const TITLE: Option<&'static str> = None;
    /// The effect, which decides whether a retry may run the tool again. By default a tool must not run twice.
    const EFFECT: Effect = Effect::Once;
    /// True for a tool that ends quickly, at most after two seconds, like arithmetic or a look into memory. An inline
    /// tool costs the engine almost nothing. A slower run is stopped and recorded as an error.
    const INLINE: bool = false;
    /// The name of the tool's probe ([`Tool::probe`]). By default the outcome of a call that was cut off stays unknown.
    const PROBE: Option<&'static str> = None;

    /// Runs the tool.
    fn run(
        &self,
        context: ToolContext,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// Wraps a typed tool for the registry.
pub fn typed<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: T::NAME.to_owned(),
        description: T::DESCRIPTION.to_owned(),
        parameters: schema_of::<T::Input>(),
        title: T::TITLE.map(str::to_owned),
        effect: T::EFFECT,
        is_inline: T::INLINE,
    };
    Arc::new(Typed { tool, spec })
}

struct Typed<T> {
    tool: T,
    spec: ToolSpec,
}

#[async_trait]
impl<T: TypedTool> Tool for Typed<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn probe(&self) -> Option<&str> {
        T::PROBE
    }

    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError> {
        let output = self.tool.run(context, read(&input)?).await?;
        bounded_json(&output)
    }
}

/// Decodes the input of a tool. The input already fits the schema, so an error means that the type is stricter than
/// the schema.
pub(super) fn read<T: DeserializeOwned>(input: &Json) -> Result<T, ToolError> {
    input
        .decode()
        .map_err(|error| ToolError::Failed(format!("The arguments cannot be read: {error}.")))
}

/// Returns the schema without `$schema`, title and description, because providers count them as input and a model
/// does not need them.
fn schema_of<T: JsonSchema>() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

/// Encodes a value as JSON. The memory for the JSON stays within the limit.
fn bounded_json(value: &impl Serialize) -> Result<Json, ToolError> {
    let mut writer = Bounded::default();
    match serde_json::to_writer(&mut writer, value) {
        Ok(()) => {}
        Err(_) if writer.is_full => {
            return Err(ToolError::Failed(format!(
                "The tool gave more than {TOOL_RESULT_MAX_BYTES} bytes. Ask it for less, or for a part."
            )));
        }
        Err(error) => {
            return Err(ToolError::Failed(format!(
                "The tool's output has no JSON form: {error}."
            )));
        }
    }
    let text = String::from_utf8(writer.bytes).ok();
    let json = text.and_then(|text| Json::parse(text).ok());
    json.ok_or_else(|| ToolError::Failed("The tool's output is not JSON.".to_owned()))
}

/// A writer that accepts bytes up to the limit and refuses more.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > TOOL_RESULT_MAX_BYTES - self.bytes.len() {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::{checked::CheckedTool, testing::context};

    struct Repeat;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Input {
        /// What is repeated.
        text: String,
        /// How often.
        times: Option<usize>,
    }

    impl TypedTool for Repeat {
        type Input = Input;
        type Output = String;
        const NAME: &'static str = "repeat";
        const DESCRIPTION: &'static str = "Repeats a text.";
        const EFFECT: Effect = Effect::Read;

        async fn run(&self, _: ToolContext, input: Input) -> Result<String, ToolError> {
            Ok(input.text.repeat(input.times.unwrap_or(1)))
        }
    }

    async fn run(input: serde_json::Value) -> Result<Json, ToolError> {
        typed(Repeat).run(context(), Json::of(&input)).await
    }

    #[test]
    fn the_schema_is_that_of_the_input() {
        let spec = typed(Repeat).spec().clone();
        assert_eq!(spec.parameters["type"], "object");
        assert_eq!(spec.parameters["required"], json!(["text"]));
        assert_eq!(spec.parameters["additionalProperties"], false);
        assert_eq!(
            spec.parameters["properties"]["text"]["description"],
            "What is repeated."
        );
        assert!(spec.parameters.get("$schema").is_none() && spec.parameters.get("title").is_none());
        let checked = CheckedTool::new(typed(Repeat)).unwrap();
        assert!(
            checked
                .validate(&Json::of(&json!({"text": "a", "wrong": 1})))
                .is_err()
        );
    }

    #[tokio::test]
    async fn input_and_output_are_typed() {
        assert_eq!(
            run(json!({"text": "ab", "times": 2}))
                .await
                .unwrap()
                .as_str(),
            "\"abab\""
        );
        assert!(matches!(
            run(json!({"text": 5})).await,
            Err(ToolError::Failed(_))
        ));
    }

    #[tokio::test]
    async fn what_is_too_long_is_an_error_and_not_held_twice() {
        let error = run(json!({"text": "x".repeat(1024), "times": 2048}))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("more than 1048576 bytes"),
            "{error}"
        );
    }
}
