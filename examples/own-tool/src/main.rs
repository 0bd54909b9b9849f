//! `everturn` with an additional tool: `own-tool dev`, `own-tool worker` and so on. An agent gets the tool by its name in
//! `tools`: `tools = ["word_count"]`.

use std::process::ExitCode;

use everturn_worker::{App, Effect, ToolContext, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

struct WordCount;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The text whose words are counted.
    text: String,
}

#[derive(Serialize)]
struct Output {
    words: usize,
    characters: usize,
}

impl TypedTool for WordCount {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "word_count";
    const DESCRIPTION: &'static str = "Counts the words and characters of a text.";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, _: ToolContext, Input { text }: Input) -> Result<Output, ToolError> {
        if text.trim().is_empty() {
            return Err(ToolError::Failed(
                "There are no words in the text.".to_owned(),
            ));
        }
        Ok(Output {
            words: text.split_whitespace().count(),
            characters: text.chars().count(),
        })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    App::new().tool(WordCount).run().await
}
