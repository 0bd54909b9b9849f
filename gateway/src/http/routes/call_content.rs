//! The content of an LLM call: what the model was sent, and what the model answered.

use everturn_proto::{
    Json,
    event::Attachment,
    turn::{AgentDefinition, Citation, LlmCompleteState, NamedFile, ToolCall},
    words::MessageRole,
};
use everturn_store::{ContextMessage, PastInput, ToolResult};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::schema::{Id, Sequence, one_of};

/// What a model was sent: instructions, messages, and the names of the offered tools. Everturn stores no request; the
/// request is made again from the stored messages and the stored definition of the agent.
#[derive(Serialize, ToSchema)]
#[schema(as = SentToModel)]
pub(super) struct SentBody {
    /// Instructions of the agent.
    instructions: String,
    /// Newest messages of the call, oldest first.
    messages: Vec<SentMessageBody>,
    /// Number of older messages of the call that are left out here, because the messages have more bytes than `call_bytes`
    /// of `[gateway]`.
    older_messages: usize,
    /// The model was not sent the conversation's messages up to this event: a summary stands for them. Null without a
    /// summary.
    #[schema(required = true, value_type = Option<Sequence>)]
    summary_through: Option<u32>,
    /// True when number and characters of the messages equal the numbers that the worker noted before the call. False when
    /// the request cannot be made again exactly, for example after a change of Everturn's version.
    is_exact: bool,
    /// Offered tools. Their definitions are not stored.
    tools: Vec<SentToolBody>,
    /// Files that the model was sent: files of messages and of results, each file once, at most 100.
    files: Vec<SentFileBody>,
    parameters: ParametersBody,
}

/// A tool that a model was offered.
#[derive(Serialize, ToSchema)]
#[schema(as = SentTool)]
struct SentToolBody {
    name: String,
    /// Hash of the tool's definition. Equal hashes mean equal definitions.
    definition_hash: String,
}

/// Parameters of an LLM call. Null: the provider decided.
#[derive(Serialize, ToSchema)]
#[schema(as = CallParameters)]
struct ParametersBody {
    #[schema(required = true)]
    max_output_tokens: Option<u32>,
    #[schema(required = true)]
    temperature: Option<f64>,
    #[schema(required = true)]
    top_p: Option<f64>,
    #[schema(required = true)]
    reasoning_effort: Option<String>,
    #[schema(required = true)]
    thinking_budget: Option<u32>,
    #[schema(required = true)]
    service_tier: Option<String>,
    #[schema(required = true)]
    parallel_tool_calls: Option<bool>,
    /// The demand on the tool calls of the turn's first reply.
    #[schema(required = true)]
    tool_choice: Option<String>,
    #[schema(required = true)]
    seed: Option<u32>,
    /// Texts that end the answer.
    stop: Vec<String>,
    /// Further fields of the request's body.
    #[schema(required = true, value_type = Option<serde_json::Value>)]
    extra_body: Option<Json>,
    /// JSON schema of the answer.
    #[schema(required = true, value_type = Option<serde_json::Value>)]
    output_schema: Option<Json>,
}

impl From<AgentDefinition> for ParametersBody {
    fn from(agent: AgentDefinition) -> Self {
        Self {
            max_output_tokens: agent.max_output_tokens,
            temperature: agent.temperature,
            top_p: agent.top_p,
            reasoning_effort: agent.reasoning_effort,
            thinking_budget: agent.thinking_budget,
            service_tier: agent.service_tier,
            parallel_tool_calls: agent.parallel_tool_calls,
            tool_choice: agent.tool_choice,
            seed: agent.seed,
            stop: agent.stop,
            extra_body: agent.extra_body,
            output_schema: agent.output.and_then(|output| output.schema),
        }
    }
}

impl SentBody {
    /// Makes the answer's part with the newest messages of at most `most_bytes` bytes, and at least one message.
    pub(super) fn new(
        input: PastInput,
        state: &LlmCompleteState,
        agent: AgentDefinition,
        most_bytes: usize,
    ) -> Self {
        let PastInput { messages, is_exact } = input;
        let first = messages.first();
        let summary = first.filter(|first| first.role == MessageRole::Summary);
        let summary_through = summary.map(|summary| summary.sequence_number);
        let older_messages = older_than(&messages, most_bytes);
        let files = state.sent.iter().flat_map(|sent| &sent.files);
        let tools = state.sent.iter().flat_map(|sent| &sent.tools);
        let tools = tools.map(|tool| SentToolBody {
            name: tool.name.clone(),
            definition_hash: tool.definition_hash.clone(),
        });
        Self {
            instructions: agent.instructions.clone(),
            messages: messages
                .into_iter()
                .skip(older_messages)
                .map(SentMessageBody::from)
                .collect(),
            older_messages,
            summary_through,
            is_exact,
            tools: tools.collect(),
            files: files.map(SentFileBody::from).collect(),
            parameters: agent.into(),
        }
    }
}

/// Returns the number of messages before the newest messages of at most `most_bytes` bytes. The newest message always
/// counts as one of the newest.
fn older_than(messages: &[ContextMessage], most_bytes: usize) -> usize {
    let mut bytes: usize = 0;
    let newest = messages.iter().rev().enumerate().take_while(|(at, it)| {
        bytes = bytes.saturating_add(bytes_of(it));
        *at == 0 || bytes <= most_bytes
    });
    messages.len() - newest.count()
}

fn bytes_of(message: &ContextMessage) -> usize {
    let inputs = message.tool_calls.iter();
    let inputs = inputs.filter_map(|call| call.tool_input.as_ref());
    let results = message.tool_results.iter().map(|result| &result.result);
    let json = inputs.chain(results).map(|json| json.as_str().len());
    message.content.len() + json.sum::<usize>()
}

/// A message that a model was sent.
#[derive(Serialize, ToSchema)]
#[schema(as = SentMessage)]
struct SentMessageBody {
    #[schema(schema_with = roles)]
    role: String,
    /// Event of the message; null for an instruction of Everturn itself. A summary has the last event that the summary stands
    /// for.
    #[schema(required = true, value_type = Option<Sequence>)]
    sequence_number: Option<u32>,
    /// True for a message from before a summary that the model is still sent.
    is_kept: bool,
    content: String,
    tool_calls: Vec<CalledToolBody>,
    tool_results: Vec<ToolResultBody>,
    attachments: Vec<SentFileBody>,
}

impl From<ContextMessage> for SentMessageBody {
    fn from(message: ContextMessage) -> Self {
        let sequence = message.sequence_number;
        Self {
            role: message.role.into(),
            sequence_number: (sequence > 0).then_some(sequence),
            is_kept: message.is_kept,
            content: message.content,
            tool_calls: message.tool_calls.into_iter().map(Into::into).collect(),
            tool_results: message.tool_results.into_iter().map(Into::into).collect(),
            attachments: message.attachments.into_iter().map(Into::into).collect(),
        }
    }
}

fn roles() -> Object {
    let roles = [
        MessageRole::User,
        MessageRole::Assistant,
        MessageRole::Summary,
    ];
    one_of(&roles.each_ref().map(MessageRole::as_str))
}

/// A tool call of a model.
#[derive(Serialize, ToSchema)]
#[schema(as = CalledTool)]
struct CalledToolBody {
    #[schema(value_type = Id)]
    execution_id: String,
    call_id: String,
    tool_name: String,
    #[schema(value_type = serde_json::Value)]
    tool_input: Option<Json>,
}

impl From<ToolCall> for CalledToolBody {
    fn from(call: ToolCall) -> Self {
        Self {
            execution_id: call.execution_id,
            call_id: call.call_id,
            tool_name: call.tool_name,
            tool_input: call.tool_input,
        }
    }
}

/// A tool's result that a model was sent.
#[derive(Serialize, ToSchema)]
#[schema(as = SentToolResult)]
struct ToolResultBody {
    call_id: String,
    tool_name: String,
    #[schema(value_type = serde_json::Value)]
    result: Json,
    is_error: bool,
}

impl From<ToolResult> for ToolResultBody {
    fn from(result: ToolResult) -> Self {
        Self {
            call_id: result.call_id,
            tool_name: result.tool_name,
            result: result.result,
            is_error: result.is_error,
        }
    }
}

/// A file of a message.
#[derive(Serialize, ToSchema)]
#[schema(as = SentFile)]
struct SentFileBody {
    #[schema(value_type = Id)]
    blob_id: String,
    media_type: String,
    file_name: String,
    bytes: u64,
}

impl From<Attachment> for SentFileBody {
    fn from(file: Attachment) -> Self {
        Self {
            blob_id: file.blob_id,
            media_type: file.media_type,
            file_name: file.file_name,
            bytes: file.bytes.into(),
        }
    }
}

impl From<&NamedFile> for SentFileBody {
    fn from(file: &NamedFile) -> Self {
        Self {
            blob_id: file.blob_id.clone(),
            media_type: file.media_type.clone(),
            file_name: file.file_name.clone(),
            bytes: file.bytes.into(),
        }
    }
}

/// What a model answered.
#[derive(Serialize, ToSchema)]
#[schema(as = AnsweredByModel)]
pub(super) struct AnsweredBody {
    text: String,
    /// Reasoning, if the provider tells the reasoning.
    reasoning: String,
    tool_calls: Vec<CalledToolBody>,
    /// The sources that the text cites: objects with `url`, `title` and `text`, without the fields that the provider did
    /// not send.
    #[schema(value_type = Vec<serde_json::Value>)]
    citations: Vec<Citation>,
    /// True when the provider cut the answer at its limit of tokens.
    is_cut: bool,
    /// Why the answer does not match the agent's `output`; null for a matching answer.
    #[schema(required = true)]
    invalid_output: Option<String>,
}

impl From<LlmCompleteState> for AnsweredBody {
    fn from(state: LlmCompleteState) -> Self {
        Self {
            text: state.text,
            reasoning: state.reasoning,
            tool_calls: state.tool_calls.into_iter().map(Into::into).collect(),
            citations: state.citations,
            is_cut: state.is_cut,
            invalid_output: state.invalid_output,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_messages_fit_and_one_always_does() {
        let message = |bytes: usize| ContextMessage::text(MessageRole::User, "x".repeat(bytes));
        let messages = [message(10), message(20), message(30)];
        assert_eq!(older_than(&messages, 60), 0);
        assert_eq!(older_than(&messages, 59), 1);
        assert_eq!(older_than(&messages, 5), 2);
        assert_eq!(older_than(&[], 5), 0);
    }
}
