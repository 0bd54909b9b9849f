//! Makes the body of a request from our context. `genai_client/chat.rs` changes the parts of the context that a
//! provider would refuse, for every API.

use genai::chat::{ChatMessage, ChatRole, ContentPart, JsonSchemaDialect, sanitize_json_schema};
use serde_json::{Value, json};

use crate::{
    genai_client::chat,
    parameters::Parameters,
    parameters::merge,
    port::{ModelRequest, OfferedTool},
    provider::ProviderKind,
};

/// The value that adds a model's thoughts to the reply, because the model needs its thoughts back together with
/// the results of its tools.
const THOUGHTS: &str = "reasoning.encrypted_content";

/// The mode in which a response is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mode {
    /// True when the response goes on without a reader. The provider then stores the response for a while.
    pub(super) is_background: bool,
    /// True when the request asks for the model's thoughts. Models without thoughts refuse the request.
    pub(super) has_thoughts: bool,
}

/// Returns the body of a request for a streamed response.
pub(super) fn body(request: &ModelRequest, mode: Mode) -> Value {
    let chat = chat::request(request, ProviderKind::OpenAiResponses);
    let input: Vec<Value> = chat.messages.iter().flat_map(items).collect();
    let mut body = json!({
        "model": request.model,
        "input": input,
        "stream": true,
        "store": mode.is_background,
    });
    if mode.is_background {
        body["background"] = json!(true);
    }
    if mode.has_thoughts {
        body["include"] = json!([THOUGHTS]);
    }
    if let Some(instructions) = &chat.system {
        body["instructions"] = json!(instructions);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if request.wants_text && !request.tools.is_empty() {
        body["tool_choice"] = json!("none");
    }
    if let Some(output) = request.schema_field(ProviderKind::OpenAiResponses) {
        body["text"] = json!({"format": {
            "type": "json_schema",
            "name": output.name,
            "strict": true,
            "schema": sanitize_json_schema(&output.schema, JsonSchemaDialect::OpenAiStrict),
        }});
    }
    if let Some(limit) = request.max_output_tokens {
        body["max_output_tokens"] = json!(limit);
    }
    let Parameters {
        temperature,
        top_p,
        reasoning_effort,
        extra_body,
        // The API has no stop texts and no seed; the configuration check refuses them.
        stop: _,
        seed: _,
    } = &request.parameters;
    if let Some(temperature) = temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(top_p) = top_p {
        body["top_p"] = json!(top_p);
    }
    if let Some(effort) = reasoning_effort {
        body["reasoning"] = json!({"effort": effort.as_str()});
    }
    let mut extra = extra_body.clone();
    for reserved in Parameters::reserved(ProviderKind::OpenAiResponses) {
        extra.remove(reserved);
    }
    merge(&mut body, Value::Object(extra));
    body
}

/// Returns the items of a message: its texts, calls and results, in order.
fn items(message: &ChatMessage) -> Vec<Value> {
    let role = match message.role {
        ChatRole::Assistant => "assistant",
        ChatRole::System => "system",
        ChatRole::User | ChatRole::Tool => "user",
    };
    let parts = message.content.parts().iter();
    if parts
        .clone()
        .any(|part| matches!(part, ContentPart::Binary(_)))
    {
        let content: Vec<Value> = parts.filter_map(content).collect();
        return vec![json!({"type": "message", "role": role, "content": content})];
    }
    parts.filter_map(|part| item(role, part)).collect()
}

/// Returns a part of a message with files.
fn content(part: &ContentPart) -> Option<Value> {
    match part {
        ContentPart::Text(text) => Some(json!({"type": "input_text", "text": text})),
        ContentPart::Binary(file) if file.is_image() => {
            Some(json!({"type": "input_image", "image_url": file.clone().into_url()}))
        }
        ContentPart::Binary(file) => Some(json!({
            "type": "input_file",
            "filename": file.name,
            "file_data": file.clone().into_url(),
        })),
        _ => None,
    }
}

fn item(role: &str, part: &ContentPart) -> Option<Value> {
    match part {
        ContentPart::Text(text) => Some(json!({"type": "message", "role": role, "content": text})),
        ContentPart::Custom(thought) => Some(thought.data.clone()),
        ContentPart::ToolCall(call) => Some(json!({
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.fn_name,
            "arguments": call.fn_arguments.to_string(),
        })),
        ContentPart::ToolResponse(response) => Some(json!({
            "type": "function_call_output",
            "call_id": response.call_id,
            "output": response.content,
        })),
        _ => None,
    }
}

fn tool(offered: &OfferedTool) -> Value {
    json!({
        "type": "function",
        "name": offered.name,
        "description": offered.description,
        "parameters": offered.parameters,
        // The schemas are the tools' schemas, which do not obey the rules of strict mode.
        "strict": false,
    })
}
