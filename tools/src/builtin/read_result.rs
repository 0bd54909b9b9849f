//! `read_result`: reads the rest of a result, after the model was shown only the beginning.
//!
//! No agent lists the tool: it is offered when a result in the context was cut. The tool reads only results in the
//! model's own context, which are the results of its thread.

use std::sync::Arc;

use everturn_proto::words::Effect;
use everturn_proto::{Thread, turn::AgentTool};
use everturn_store::{ResultRange, ToolResults};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    context::ToolContext,
    error::ToolError,
    excerpt::{Piece, piece},
    typed::TypedTool,
};

/// The name of the tool. The note in a cut result contains the name.
pub const NAME: &str = everturn_proto::words::READ_RESULT_TOOL;
/// The time limit of a call, which is one query of the store.
const TIMEOUT_MS: u32 = 30_000;
/// The most characters shown of an id that the model made up.
const MAX_SHOWN_CHARS: usize = 80;

/// The tool `read_result`.
pub struct ReadResult {
    results: Arc<dyn ToolResults>,
}

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The execution_id in the result that was cut.
    execution_id: String,
    /// Where to begin: the next_offset_bytes of the piece before.
    #[serde(default)]
    offset_bytes: u32,
    /// How much to read at the most; as much as fits when left out.
    max_bytes: Option<u32>,
}

/// A piece of the result.
#[derive(Debug, Serialize)]
pub struct Output {
    execution_id: String,
    text: String,
    offset_bytes: u32,
    total_bytes: u32,
    /// The offset of the next piece; left out at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset_bytes: Option<u32>,
}

impl ReadResult {
    /// Creates the tool for the results of a store.
    pub fn new(results: Arc<dyn ToolResults>) -> Self {
        Self { results }
    }
}

impl TypedTool for ReadResult {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = NAME;
    const DESCRIPTION: &'static str =
        "Reads a piece of a tool's result that was too long to be shown whole.";
    const TITLE: Option<&'static str> = Some("Read more of a long result");
    const EFFECT: Effect = Effect::Read;
    const INLINE: bool = true;

    async fn run(&self, context: ToolContext, input: Input) -> Result<Output, ToolError> {
        let thread = Thread::of(
            &context.stored_conversation_id,
            &context.message_id,
            &context.agent_execution_id,
        );
        let range = ResultRange::new(input.offset_bytes, input.max_bytes.unwrap_or(u32::MAX));
        let read = self.results.tool_result_of_thread(
            &context.stored_conversation_id,
            &thread,
            &input.execution_id,
            range,
        );
        let slice = read.await.map_err(|error| {
            tracing::warn!(%error, "a tool's result cannot be read");
            ToolError::Unavailable {
                message: "The result cannot be read now.".to_owned(),
                retry_after: None,
            }
        })?;
        let Some(slice) = slice else {
            let shown: String = input.execution_id.chars().take(MAX_SHOWN_CHARS).collect();
            return Err(ToolError::Failed(format!(
                "The conversation has no result of a tool execution `{shown}`."
            )));
        };
        // A slice with many quotes or line breaks is longer as JSON, and must not be cut again.
        let Piece { text, next_offset } = piece(&slice.text, 0);
        let next_of_piece = next_offset.and_then(|bytes| u32::try_from(bytes).ok());
        Ok(Output {
            next_offset_bytes: match next_of_piece {
                Some(bytes) => Some(slice.offset_bytes.saturating_add(bytes)),
                None => slice.next_offset_bytes(),
            },
            text: text.to_owned(),
            offset_bytes: slice.offset_bytes,
            total_bytes: slice.total_bytes,
            execution_id: input.execution_id,
        })
    }
}

/// Returns the settings of the tool. They are fixed, because no agent lists the tool.
pub fn settings() -> AgentTool {
    AgentTool {
        name: NAME.to_owned(),
        timeout_ms: TIMEOUT_MS,
        ..AgentTool::default()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use everturn_proto::{Json, ids, limits::TOOL_RESULT_INLINE_BYTES};
    use everturn_store::{Access, Result, ResultSlice, StoreError};
    use serde_json::{Value, json};

    use super::*;
    use crate::{checked::CheckedTool, testing, typed::typed};

    const EXECUTION: &str = "exec_0123456789ab";

    /// A store with one result, in the conversation's own thread.
    struct OneResult(String);

    #[async_trait]
    impl ToolResults for OneResult {
        async fn tool_result(
            &self,
            _: &Access,
            _: &str,
            _: &str,
            _: ResultRange,
        ) -> Result<Option<ResultSlice>> {
            unreachable!("a model has no access of its own")
        }

        async fn tool_result_of_thread(
            &self,
            conversation_id: &str,
            thread: &Thread,
            execution_id: &str,
            range: ResultRange,
        ) -> Result<Option<ResultSlice>> {
            if execution_id == "exec_away" {
                return Err(StoreError::Unavailable("scripted".into()));
            }
            let is_found =
                (conversation_id, thread, execution_id) == ("c", &Thread::Conversation, EXECUTION);
            Ok(is_found.then(|| range.of(&self.0)))
        }
    }

    fn tool(result: &str) -> CheckedTool {
        CheckedTool::new(typed(ReadResult::new(Arc::new(OneResult(
            result.to_owned(),
        )))))
        .unwrap()
    }

    async fn read(tool: &CheckedTool, input: Value) -> std::result::Result<Value, ToolError> {
        let context = ToolContext {
            agent_execution_id: ids::root_agent_execution_id("c", "m"),
            ..testing::context()
        };
        let result = tool.tool().run(context, Json::of(&input)).await?;
        assert!(
            result.as_str().len() <= TOOL_RESULT_INLINE_BYTES,
            "the model sees it whole"
        );
        Ok(result.to_value())
    }

    #[tokio::test]
    async fn a_long_result_is_read_piece_by_piece() {
        for whole in ["0123456789".repeat(5000), "\"ü\"\n".repeat(9000)] {
            let tool = tool(&whole);
            let (mut text, mut next) = (String::new(), Some(0));
            while let Some(offset) = next {
                let input = json!({"execution_id": EXECUTION, "offset_bytes": offset});
                let piece = read(&tool, input).await.unwrap();
                assert_eq!(
                    (&piece["offset_bytes"], &piece["total_bytes"]),
                    (&json!(offset), &json!(whole.len()))
                );
                text.push_str(piece["text"].as_str().unwrap());
                next = piece["next_offset_bytes"].as_u64();
            }
            assert_eq!(text, whole);
        }
    }

    #[tokio::test]
    async fn a_piece_may_be_small() {
        let input = json!({"execution_id": EXECUTION, "offset_bytes": 2, "max_bytes": 5});
        assert_eq!(
            read(&tool("0123456789"), input).await.unwrap(),
            json!({
                "execution_id": EXECUTION,
                "text": "23456",
                "offset_bytes": 2,
                "total_bytes": 10,
                "next_offset_bytes": 7,
            })
        );
    }

    #[tokio::test]
    async fn only_results_of_the_models_own_context_are_read() {
        let of = |id: &str| json!({"execution_id": id});
        let unknown = read(&tool("x"), of("exec_another")).await.unwrap_err();
        assert!(matches!(unknown, ToolError::Failed(_)), "{unknown:?}");
        let away = read(&tool("x"), of("exec_away")).await.unwrap_err();
        assert!(matches!(away, ToolError::Unavailable { .. }), "{away:?}");
        // A sub-agent has a thread of its own.
        let context = ToolContext {
            agent_execution_id: "run_of_a_sub_agent".into(),
            ..testing::context()
        };
        let foreign = tool("x")
            .tool()
            .run(context, Json::of(&of(EXECUTION)))
            .await;
        assert!(matches!(foreign, Err(ToolError::Failed(_))), "{foreign:?}");
    }
}
