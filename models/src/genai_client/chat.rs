//! Makes genai's messages from our context.
//!
//! The context is the true history. Providers refuse parts of it: every call needs its result, arguments must be
//! objects, names and ids fit a pattern, texts are not empty. This module changes the unfit parts, because a refused
//! message would make every later turn of the conversation fail.

use everturn_proto::{Json, ids, turn::ToolCall, words::MessageRole};
use everturn_store::{ContextMessage, ToolResult};
use genai::chat::{
    ChatMessage, ChatRequest, ContentPart, MessageContent, Tool, ToolCall as WireCall, ToolResponse,
};
use serde_json::{Value, json};

use super::{files, gemini};
use crate::{
    output::OutputFormat,
    port::{ModelRequest, OfferedTool, signer},
    provider::ProviderKind,
};

/// The text for the model about a call without a result: cancelled, or lost.
const NO_RESULT: &str = "Error: the call was not carried out to its end; there is no result.";
/// The text for the model after a cut answer, so that the model goes on.
const GO_ON: &str = "Your last message was cut at the limit of its length. Go on exactly where it ended, and repeat nothing.";
/// The first message of a context that begins in the middle of a conversation: Anthropic requires a user's message
/// first.
const EARLIER: &str = "(Earlier messages of this conversation are left out.)";
const SUMMARY: &str = "(A summary that you have written of the earlier messages of this conversation, which are left out:)";
const EMPTY: &str = "(empty message)";
const MAX_NAME_CHARS: usize = 64;

/// The model that reads the context. It determines the ids of calls and the signatures that are sent.
struct Reader {
    kind: ProviderKind,
    signer: String,
}

impl Reader {
    /// Returns the call's signatures by this reader. Another model would refuse them.
    fn signatures<'a>(&self, call: &'a ToolCall) -> &'a [String] {
        if call.signed_by == self.signer {
            &call.signatures
        } else {
            &[]
        }
    }
}

/// Returns the request in genai's form.
pub(crate) fn request(request: &ModelRequest, kind: ProviderKind) -> ChatRequest {
    let reader = &Reader {
        kind,
        signer: signer(&request.provider, &request.model),
    };
    let mut messages = Vec::new();
    if request
        .messages
        .first()
        .is_none_or(|message| message.role == MessageRole::Assistant)
    {
        messages.push(ChatMessage::user(EARLIER));
    }
    let mut following = request.messages.iter().skip(1);
    for message in &request.messages {
        let next = following.next();
        match message.role {
            MessageRole::Assistant => {
                push_assistant(&mut messages, message, reader);
                messages.extend(files::of_results(message, &request.files));
                let output = request.output.as_ref();
                if let Some(complaint) = output.and_then(|it| it.complaint(message, next)) {
                    messages.push(ChatMessage::user(complaint));
                } else if message.goes_on_in(next) {
                    messages.push(ChatMessage::user(GO_ON));
                }
            }
            MessageRole::Summary => messages.push(ChatMessage::user(summary(&message.content))),
            MessageRole::User | MessageRole::Unknown(_) => {
                let text = message.content.as_str();
                let is_empty = text.trim().is_empty();
                if message.attachments.is_empty() {
                    messages.push(ChatMessage::user(if is_empty { EMPTY } else { text }));
                } else {
                    messages.push(files::of_message(message, &request.files));
                }
            }
        }
    }
    let mut chat = ChatRequest::new(messages);
    if let Some(instructions) = instructions(request, kind) {
        chat = chat.with_system(instructions);
    }
    // OpenAI refuses an empty list.
    if request.tools.is_empty() {
        chat
    } else {
        chat.with_tools(request.tools.iter().map(tool))
    }
}

/// Returns the system prompt, with the format of the answer if the provider does not get the format in a field.
fn instructions(request: &ModelRequest, kind: ProviderKind) -> Option<String> {
    let output = request.output.as_ref();
    let output = output.filter(|output| !output.has_field(kind, !request.tools.is_empty()));
    let given = request.instructions.iter().cloned();
    let texts: Vec<String> = given.chain(output.map(OutputFormat::instruction)).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Returns the text in place of messages that are no longer sent.
fn summary(text: &str) -> String {
    if text.trim().is_empty() {
        EARLIER.to_owned()
    } else {
        format!("{SUMMARY}\n\n{text}")
    }
}

/// Adds an assistant's message, and the results of its calls in call order.
fn push_assistant(messages: &mut Vec<ChatMessage>, message: &ContextMessage, reader: &Reader) {
    let blocks = message
        .tool_calls
        .iter()
        .flat_map(|call| reader.signatures(call))
        .filter_map(|text| thinking_block(text))
        .filter(|block| is_of(block, reader.kind));
    let mut parts: Vec<ContentPart> = blocks
        .map(|block| ContentPart::from_custom(block, None))
        .collect();
    if !message.content.trim().is_empty() {
        parts.push(ContentPart::from_text(message.content.as_str()));
    }
    parts.extend(
        message
            .tool_calls
            .iter()
            .map(|call| ContentPart::ToolCall(wire_call(call, reader))),
    );
    // No provider accepts an empty answer.
    if parts.is_empty() {
        return;
    }
    messages.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
    let responses: Vec<ToolResponse> = message
        .tool_calls
        .iter()
        .map(|call| {
            let result = message
                .tool_results
                .iter()
                .find(|result| result.execution_id == call.execution_id);
            ToolResponse::new(
                wire_id(call, reader.kind),
                result.map_or_else(|| NO_RESULT.to_owned(), result_text),
            )
            .with_fn_name(wire_name(&call.tool_name))
        })
        .collect();
    if !responses.is_empty() {
        messages.push(ChatMessage::from(responses));
    }
}

fn wire_call(call: &ToolCall, reader: &Reader) -> WireCall {
    let signatures: Vec<String> = reader
        .signatures(call)
        .iter()
        .filter(|text| thinking_block(text).is_none())
        .cloned()
        .collect();
    WireCall {
        call_id: wire_id(call, reader.kind),
        fn_name: wire_name(&call.tool_name),
        fn_arguments: arguments(call.tool_input.as_ref()),
        thought_signatures: (!signatures.is_empty()).then_some(signatures),
    }
}

/// Returns the arguments as an object, because providers require an object. If the model sent another value (a cut-off
/// text), the object contains it, so that the model can still read it.
fn arguments(input: Option<&Json>) -> Value {
    match input.map(Json::to_value).unwrap_or_default() {
        Value::Object(object) => Value::Object(object),
        Value::Null => json!({}),
        other => json!({"invalid_arguments": other}),
    }
}

/// Returns the call's id, or an id of ours when the id is another provider's and this provider would refuse it.
fn wire_id(call: &ToolCall, kind: ProviderKind) -> String {
    let own = ids::call_id(&call.execution_id);
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match kind {
        ProviderKind::Anthropic if !call.call_id.bytes().all(is_fit) => own,
        // The model gave no id, and gets no id back.
        ProviderKind::Gemini if call.call_id == own => gemini::no_id(&wire_name(&call.tool_name)),
        _ => call.call_id.clone(),
    }
}

/// Returns the tool's name in a form that providers accept. A model can invent names that providers refuse to read
/// back.
fn wire_name(name: &str) -> String {
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(MAX_NAME_CHARS).map(fit).collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

/// Returns a result as text. genai has no flag for errors, so the text of an error begins with a mark.
fn result_text(result: &ToolResult) -> String {
    let text = match result.result.decode::<String>() {
        Ok(text) => text,
        Err(_) => result.result.as_str().to_owned(),
    };
    match (result.is_error, text.trim().is_empty()) {
        (true, _) => format!("Error: {text}"),
        (false, true) => "(empty result)".to_owned(),
        (false, false) => text,
    }
}

/// Returns the block of a model's thinking from a call's signature: Anthropic's block, or a reasoning item of OpenAI's
/// Responses API.
fn thinking_block(signature: &str) -> Option<Value> {
    let block: Value = serde_json::from_str(signature).ok()?;
    matches!(
        block.get("type")?.as_str()?,
        "thinking" | "redacted_thinking" | "reasoning"
    )
    .then_some(block)
}

/// True when a provider of this kind takes a block of thinking back.
fn is_of(block: &Value, kind: ProviderKind) -> bool {
    (block["type"] == "reasoning") == (kind == ProviderKind::OpenAiResponses)
}

fn tool(offered: &OfferedTool) -> Tool {
    Tool::new(offered.name.as_str())
        .with_description(offered.description.as_str())
        .with_schema(offered.parameters.clone())
}
