//! A tool for tests that misbehaves: it hangs, floods, garbles text and leaves processes behind.

use std::{future, path::PathBuf, thread, time::Duration};

use everturn_proto::limits::TOOL_RESULT_MAX_BYTES;
use everturn_proto::words::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::{content, context::ToolContext, error::ToolError, process, typed::TypedTool};

/// A time longer than any test.
const LONG: Duration = Duration::from_secs(600);
/// Bytes of the large outputs, if no limit stops them.
const FLOOD_BYTES: usize = 1 << 30;

/// A tool for tests.
pub(super) struct HostileTool {
    /// A file with a process id in every line.
    effect_file: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to do.
    act: Act,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Act {
    /// Waits for what never comes.
    Hang,
    /// Holds its thread.
    Block,
    /// Gives 1 GB, made while it is read.
    Flood,
    /// Runs a program that writes 1 GB.
    ProgramFlood,
    /// Gives bytes that are no text.
    InvalidUtf8,
    /// Gives text with NUL characters in it.
    Nul,
    /// Runs a program that starts others, and waits.
    Fork,
    /// Runs a program that starts another, and ends.
    Orphan,
    /// Runs a program that writes the variables which say for whom it runs.
    Caller,
}

pub(super) enum Output {
    Value(Value),
    Flood,
}

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Flood => {
                serializer.collect_seq((0..FLOOD_BYTES / 1024).map(|_| "x".repeat(1024)))
            }
        }
    }
}

impl HostileTool {
    /// Creates the tool; process ids are appended to `effect_file`.
    pub(super) fn new(effect_file: impl Into<PathBuf>) -> Self {
        Self {
            effect_file: effect_file.into(),
        }
    }

    async fn shell(&self, script: &str) -> Result<Value, ToolError> {
        let file = self.effect_file.display().to_string();
        let finished =
            process::run("sh", ["-c", script, "sh", &file], TOOL_RESULT_MAX_BYTES / 2).await;
        let finished = finished
            .map_err(|error| ToolError::Failed(format!("The shell did not run: {error}.")))?;
        let bytes = finished.stdout.len();
        Ok(
            json!({ "bytes": bytes, "is_cut": finished.is_cut, "output": content::from_bytes(finished.stdout, None) }),
        )
    }
}

/// Returns a program's variables about the caller.
async fn variables(context: &ToolContext) -> Result<Value, ToolError> {
    const SCRIPT: &str = "env | grep ^EVERTURN_ | sort";
    let finished = process::run_for(context, "sh", ["-c", SCRIPT], TOOL_RESULT_MAX_BYTES / 2).await;
    let finished =
        finished.map_err(|error| ToolError::Failed(format!("The shell did not run: {error}.")))?;
    Ok(content::from_bytes(finished.stdout, None))
}

impl TypedTool for HostileTool {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "test_hostile";
    const DESCRIPTION: &'static str = "A tool for tests: misbehaves as told.";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, context: ToolContext, input: Input) -> Result<Output, ToolError> {
        let value = match input.act {
            Act::Hang => future::pending().await,
            Act::Block => {
                thread::sleep(LONG);
                Value::Null
            }
            Act::Flood => return Ok(Output::Flood),
            Act::ProgramFlood => {
                self.shell(&format!("head -c {FLOOD_BYTES} /dev/zero"))
                    .await?
            }
            Act::InvalidUtf8 => {
                content::from_bytes(vec![b'a', 0xff, 0xfe, b'z'], Some("text/plain"))
            }
            Act::Nul => "a\0b".into(),
            Act::Fork => {
                self.shell("for i in 1 2 3; do (sleep 600 & echo $! >>$1; wait) & done; wait")
                    .await?
            }
            Act::Orphan => self.shell("sleep 600 & echo $! >>$1").await?,
            Act::Caller => variables(&context).await?,
        };
        Ok(Output::Value(value))
    }
}
