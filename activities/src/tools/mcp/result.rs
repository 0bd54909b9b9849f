//! From a server's answer to a tool's output, and what each error means for the call.

use everturn_proto::Json;
use rmcp::{
    model::{CallToolResult, ContentBlock, ResourceContents, ServerResult},
    service::ServiceError,
    transport::streamable_http_client::StreamableHttpError,
};
use serde_json::{Value, json};

use super::connection::CallError;
use crate::tools::{Effect, ToolError, ToolOutput};

/// The output of a tool that answered. A result that the server calls an error is a known failure.
pub(super) fn output(server: &str, answer: ServerResult) -> Result<ToolOutput, ToolError> {
    match answer {
        ServerResult::CallToolResult(result) if result.is_error == Some(true) => {
            Err(ToolError::Failed(error_text(&value(result))))
        }
        ServerResult::CallToolResult(result) => Ok(ToolOutput::of(&value(result))),
        // Nobody declared that there is someone to ask, or that tasks are awaited.
        ServerResult::InputRequiredResult(_) => {
            Err(ToolError::Failed(format!("MCP server `{server}` wants to ask a person something, and there is none.")))
        }
        _ => Err(ToolError::Failed(format!("MCP server `{server}` answered with something that is no result."))),
    }
}

/// What the model sees: structured content where there is some, a text as it is, several parts as a list.
fn value(result: CallToolResult) -> Value {
    let is_text = result.content.iter().all(|block| matches!(block, ContentBlock::Text(_)));
    let mut parts: Vec<Value> = result.content.into_iter().map(part).collect();
    match result.structured_content {
        // Servers repeat it as text for those who cannot read it.
        Some(structured) if is_text => structured,
        Some(structured) => json!({"structured": structured, "content": parts}),
        None if parts.is_empty() => json!(""),
        None if parts.len() == 1 => parts.remove(0),
        None => Value::Array(parts),
    }
}

/// Binary parts are base64 with their type, as everywhere in Everturn.
fn part(block: ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => Value::String(text.text),
        ContentBlock::Image(image) => json!({"encoding": "base64", "type": image.mime_type, "data": image.data}),
        ContentBlock::Audio(audio) => json!({"encoding": "base64", "type": audio.mime_type, "data": audio.data}),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                json!({"uri": uri, "type": mime_type, "text": text})
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                json!({"uri": uri, "encoding": "base64", "type": mime_type, "data": blob})
            }
            other => json!(other),
        },
        ContentBlock::ResourceLink(link) => {
            json!({"uri": link.uri, "name": link.name, "type": link.mime_type, "description": link.description})
        }
        other => json!(other),
    }
}

fn error_text(value: &Value) -> String {
    match value {
        Value::String(text) if text.trim().is_empty() => "The tool failed and did not say why.".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(Value::is_string) => {
            parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
        }
        other => Json::of(other).as_str().to_owned(),
    }
}

/// True when the connection is of no more use: the next call makes a new one.
pub(super) fn is_broken(error: &CallError) -> bool {
    matches!(error, CallError::Service(ServiceError::TransportSend(_) | ServiceError::TransportClosed))
}

/// What a call without an answer means. Details stay in the log: they may name addresses and paths.
pub(super) fn failure(server: &str, effect: Effect, error: &CallError) -> ToolError {
    match error {
        CallError::Service(ServiceError::McpError(refusal)) => {
            ToolError::Failed(format!("MCP server `{server}` refused the call: {}", refusal.message))
        }
        CallError::Service(ServiceError::TransportSend(sent)) if was_not_sent(&*sent.error) => {
            ToolError::Failed(format!("MCP server `{server}` cannot be reached; the tool was not called."))
        }
        CallError::Service(ServiceError::UnexpectedResponse) => {
            ToolError::Failed(format!("MCP server `{server}` answered with something that is no result."))
        }
        CallError::Service(_) => {
            ToolError::Interrupted(format!("The connection to MCP server `{server}` broke before the tool answered."))
        }
        CallError::Ended(why) => {
            let message = format!("The connection to MCP server `{server}` was ended: {why}.");
            // The same call would give the same answer.
            if effect == Effect::Once { ToolError::Interrupted(message) } else { ToolError::Failed(message) }
        }
        CallError::Silent(limit) => ToolError::Interrupted(format!(
            "The tool gave neither an answer nor a sign of progress for {} s and was cancelled.",
            limit.as_secs()
        )),
    }
}

/// True when the request surely did not reach the tool: no connection was made, or the server turned it away unread.
fn was_not_sent(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(error)) => return error.is_connect(),
            Some(
                StreamableHttpError::AuthRequired(_)
                | StreamableHttpError::InsufficientScope(_)
                | StreamableHttpError::SessionExpired,
            ) => return true,
            _ => next = error.source(),
        }
    }
    false
}
