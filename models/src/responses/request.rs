//! Makes the body of a request from our context. `models/src/conversation/mod.rs` changes the parts of the context that a
//! provider would refuse, for every API.

use serde_json::{Value, json};

use crate::{
    conversation::{Conversation, File, Message, Reply, UserPart},
    output::OutputFormat,
    parameters::{Parameters, merge},
    port::{ModelRequest, OfferedTool},
    profile::Profile,
    provider::ProviderKind,
    strict_schema::strict,
};

/// The value that adds a model's thoughts to the reply, because the model needs its thoughts back together with
/// the results of its tools.
const THOUGHTS: &str = "reasoning.encrypted_content";

/// The mode in which a response is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    /// True when the response goes on without a reader. The provider then stores the response for a while.
    pub(crate) is_background: bool,
    /// True when the request asks for the model's thoughts. Models without thoughts refuse the request.
    pub(crate) has_thoughts: bool,
}

/// Returns the body of a request for a streamed response.
pub(crate) fn body(request: &ModelRequest, mode: Mode, profile: &Profile) -> Value {
    let conversation = Conversation::of(request, profile);
    let items = conversation.messages.iter().flat_map(items);
    let input: Vec<Value> = asking_for_json(request).into_iter().chain(items).collect();
    let mut body = json!({
        "model": request.model,
        "input": input,
        "stream": true,
        "store": mode.is_background,
    });
    if let Some(key) = request.cache_key(profile) {
        body["prompt_cache_key"] = key;
    }
    if mode.is_background {
        body["background"] = json!(true);
    }
    if mode.has_thoughts {
        body["include"] = json!([THOUGHTS]);
    }
    if let Some(instructions) = &conversation.system {
        body["instructions"] = json!(instructions);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(demand) = request.demand() {
        body["tool_choice"] = demand.on_openai(|name| json!({"type": "function", "name": name}));
    }
    if let Some(parallel) = request.parallel_calls() {
        body["parallel_tool_calls"] = json!(parallel);
    }
    if let Some(output) = request.schema_field(ProviderKind::OpenAiResponses) {
        body["text"] = json!({"format": format(output)});
    }
    if let Some(limit) = request.max_output_tokens {
        body["max_output_tokens"] = json!(limit);
    }
    let Parameters {
        temperature,
        top_p,
        reasoning_effort,
        service_tier,
        extra_body,
        parallel_tool_calls: _,
        // The API has no budget of thinking, no stop texts and no seed; the configuration check refuses them.
        thinking_budget: _,
        stop: _,
        seed: _,
    } = &request.parameters;
    if let Some(temperature) = temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(top_p) = top_p {
        body["top_p"] = json!(top_p);
    }
    if let Some(tier) = service_tier {
        body["service_tier"] = json!(tier);
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

fn format(output: &OutputFormat) -> Value {
    match &output.schema {
        Some(schema) => json!({
            "type": "json_schema",
            "name": output.name,
            "strict": true,
            "schema": strict(schema),
        }),
        None => json!({"type": "json_object"}),
    }
}

/// Returns the item that asks for a JSON object. The API takes the format of JSON only when the word JSON is in `input`;
/// the word in `instructions` does not count.
fn asking_for_json(request: &ModelRequest) -> Option<Value> {
    let output = request.output.as_ref()?;
    let has_field = output.has_field(ProviderKind::OpenAiResponses, !request.tools.is_empty());
    let is_asked = has_field && output.schema.is_none();
    is_asked
        .then(|| json!({"type": "message", "role": "developer", "content": output.instruction()}))
}

/// Returns the items of a message: its texts, calls and results, in order.
fn items(message: &Message) -> Vec<Value> {
    match message {
        Message::User(parts) => {
            let content: Value = match parts.as_slice() {
                [UserPart::Text(text)] => json!(text),
                parts => parts.iter().map(content).collect(),
            };
            vec![json!({"type": "message", "role": "user", "content": content})]
        }
        Message::Model(reply) => items_of_reply(reply),
    }
}

/// Returns a part of a message with files.
fn content(part: &UserPart) -> Value {
    match part {
        UserPart::Text(text) => json!({"type": "input_text", "text": text}),
        UserPart::File(file) if file.is_image() => {
            json!({"type": "input_image", "image_url": file.url()})
        }
        UserPart::File(file @ File { name, .. }) => {
            json!({"type": "input_file", "filename": name, "file_data": file.url()})
        }
    }
}

/// Returns the items of a reply: each call after the thoughts before it, then the results.
fn items_of_reply(reply: &Reply) -> Vec<Value> {
    let thoughts = |index: usize| {
        let signatures = reply.calls.get(index).map(|call| &call.signatures);
        let signatures = signatures.into_iter().flatten();
        signatures
            .filter(|block| block["type"] == "reasoning")
            .cloned()
    };
    let mut items: Vec<Value> = thoughts(0).collect();
    items.extend(
        reply
            .text
            .iter()
            .map(|text| json!({"type": "message", "role": "assistant", "content": text})),
    );
    for (index, call) in reply.calls.iter().enumerate() {
        if index > 0 {
            items.extend(thoughts(index));
        }
        items.push(json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments.as_str(),
        }));
    }
    items.extend(reply.calls.iter().map(
        |call| json!({"type": "function_call_output", "call_id": call.id, "output": call.result}),
    ));
    items
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
