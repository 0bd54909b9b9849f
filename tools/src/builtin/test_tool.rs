//! Tools whose behaviour a test controls: they have a countable effect, sleep, fail, panic or return a large result.
//! Crash tests read the effect file afterwards: it has one line per effect.

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use async_trait::async_trait;
use everturn_proto::Json;
use everturn_proto::words::Effect;
use everturn_supervisor::failpoint;
use serde::Deserialize;
use serde_json::json;

use crate::{
    context::ToolContext,
    error::ToolError,
    tool::{Tool, ToolSpec},
    typed,
};

const MAX_SLEEP_MS: u64 = 600_000;
/// More than every limit on results, so that tests can exceed the limits.
const MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;

/// A tool for tests.
pub struct TestTool {
    spec: ToolSpec,
    effect_file: Option<PathBuf>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Input {
    fail: Option<String>,
    sleep_ms: u64,
    effect: bool,
    output_bytes: usize,
    panic: bool,
}

impl TestTool {
    /// Creates a tool with this name and effect. The effect appends a line to `effect_file`.
    pub fn new(name: impl Into<String>, effect: Effect, effect_file: Option<PathBuf>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "fail": {"type": "string", "description": "Fail with this message."},
                "sleep_ms": {"type": "integer", "minimum": 0, "maximum": MAX_SLEEP_MS},
                "effect": {"type": "boolean", "description": "First append a line to the effect file."},
                "output_bytes": {"type": "integer", "minimum": 0, "maximum": MAX_OUTPUT_BYTES},
                "panic": {"type": "boolean"},
            },
            "additionalProperties": false,
        });
        let description =
            "A tool for tests: has an effect, sleeps, then fails or succeeds, as told.".into();
        Self {
            spec: ToolSpec {
                name: name.into(),
                description,
                parameters,
                title: None,
                effect,
                is_inline: false,
            },
            effect_file,
        }
    }

    /// Makes the tool run inline.
    #[must_use]
    pub fn inline(mut self) -> Self {
        self.spec.is_inline = true;
        self
    }
}

#[async_trait]
impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError> {
        let input: Input = typed::read(&input)?;
        if input.effect {
            let file = self
                .effect_file
                .clone()
                .ok_or_else(|| ToolError::Failed("There is no effect file.".into()))?;
            let line = format!("{}\n", context.execution_id);
            let written = tokio::task::spawn_blocking(move || append(&file, &line)).await;
            match written {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    return Err(ToolError::Failed(format!(
                        "The effect file cannot be written: {error}."
                    )));
                }
                Err(error) => {
                    return Err(ToolError::Failed(format!(
                        "The effect file was not written: {error}."
                    )));
                }
            }
        }
        failpoint::reach_in(
            "tool.during",
            &context.stored_conversation_id,
            &context.execution_id,
        )
        .await;
        tokio::time::sleep(Duration::from_millis(input.sleep_ms.min(MAX_SLEEP_MS))).await;
        assert!(!input.panic, "the test tool was told to panic");
        if let Some(message) = input.fail {
            return Err(ToolError::Failed(message));
        }
        let output = "x".repeat(input.output_bytes.min(MAX_OUTPUT_BYTES));
        let mut result = json!({
            "execution_id": context.execution_id,
            "agent_execution_id": context.agent_execution_id,
            "depth": context.depth,
            "attempt": context.attempt,
        });
        if !output.is_empty() {
            result["output"] = output.into();
        }
        Ok(Json::of(&result))
    }
}

/// Appends a line in a single write, so that no other process can interleave, and waits for the disk.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(line.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::testing::context;

    fn tool(file: Option<PathBuf>) -> TestTool {
        TestTool::new("test_once", Effect::Once, file)
    }

    async fn run(
        tool: &TestTool,
        input: serde_json::Value,
    ) -> Result<serde_json::Value, ToolError> {
        tool.run(context(), Json::of(&input))
            .await
            .map(|result| result.to_value())
    }

    #[tokio::test]
    async fn the_effect_is_one_line_and_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("effects");
        let tool = tool(Some(file.clone()));
        assert_eq!(
            run(&tool, json!({"effect": true, "fail": "no"})).await,
            Err(ToolError::Failed("no".into()))
        );
        run(&tool, json!({"effect": true})).await.unwrap();
        run(&tool, json!({})).await.unwrap();
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            "exec_0123456789ab\nexec_0123456789ab\n"
        );
    }

    #[tokio::test]
    async fn without_a_file_the_effect_fails() {
        assert!(run(&tool(None), json!({"effect": true})).await.is_err());
    }

    #[tokio::test]
    async fn it_sleeps_and_returns_as_much_as_told() {
        let start = Instant::now();
        let result = run(&tool(None), json!({"sleep_ms": 50, "output_bytes": 1000}))
            .await
            .unwrap();
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert_eq!(result["output"].as_str().unwrap().len(), 1000);
        assert_eq!(result["attempt"], 1);
    }

    #[tokio::test]
    async fn it_panics_when_told() {
        let handle = tokio::spawn(async { run(&tool(None), json!({"panic": true})).await });
        assert!(handle.await.unwrap_err().is_panic());
    }
}
