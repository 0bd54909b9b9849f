//! A tool for tests that runs a program, like a tool of an operator.

use everturn_proto::limits::TOOL_RESULT_MAX_BYTES;
use everturn_proto::words::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{content, context::ToolContext, error::ToolError, process, typed::TypedTool};

/// A tool that runs the program named in a call.
pub(super) struct ProgramTool;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The program.
    program: String,
    /// Its arguments.
    arguments: Vec<String>,
}

impl TypedTool for ProgramTool {
    type Input = Input;
    type Output = Value;
    const NAME: &'static str = "test_program";
    const DESCRIPTION: &'static str = "A tool for tests: runs a program.";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, _: ToolContext, input: Input) -> Result<Value, ToolError> {
        let finished = process::run(&input.program, &input.arguments, TOOL_RESULT_MAX_BYTES / 2)
            .await
            .map_err(|error| ToolError::Failed(format!("The program did not run: {error}.")))?;
        Ok(json!({
            "code": finished.status.code(),
            "output": content::from_bytes(finished.stdout, None),
            "errors": content::from_bytes(finished.stderr, None),
        }))
    }
}
