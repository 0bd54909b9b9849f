//! The body of a request for a chat completion.

use serde_json::{Map, Value, json};

use crate::{
    conversation::{Call, Conversation, File, Message, Reply, UserPart},
    output::OutputFormat,
    parameters::{Parameters, merge},
    port::{ModelRequest, OfferedTool},
    profile::{Dialect, MaxTokens, Profile, Roles, Thoughts},
    strict_schema::strict,
    wire::chat::reply::{DETAILS, EXTRA_CONTENT, REASONING_CONTENT},
};

/// The model's message between a tool's result and a user's message, for providers that refuse the one after the other.
const BETWEEN: &str = "(The results of the tools are above.)";

/// The text in place of the thoughts of another model. Moonshot takes an empty text for a missing field.
const NO_THOUGHTS: &str = " ";

/// Returns the body of a request for a streamed reply.
pub(crate) fn body(request: &ModelRequest, profile: &Profile) -> Value {
    let conversation = Conversation::of(request, profile);
    let mut body = json!({
        "model": request.model,
        "messages": messages(conversation, profile),
        "stream": true,
    });
    if profile.stream_options {
        body["stream_options"] = json!({"include_usage": true});
    }
    // OpenAI refuses an empty list.
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(demand) = request.demand() {
        body["tool_choice"] = demand.on_openai(one_tool);
    }
    if let Some(output) = request.schema_field(profile.kind) {
        body["response_format"] = response_format(output);
    }
    if let Some(limit) = request.max_output_tokens {
        let name = match profile.max_tokens {
            MaxTokens::MaxTokens => "max_tokens",
            MaxTokens::MaxCompletionTokens => "max_completion_tokens",
        };
        body[name] = json!(limit);
    }
    let Parameters {
        temperature,
        top_p,
        reasoning_effort,
        service_tier,
        stop,
        seed,
        extra_body,
        // The wire has no budget of thinking; the configuration check refuses the parameter.
        thinking_budget: _,
        parallel_tool_calls: _,
    } = &request.parameters;
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body[key] = value;
        }
    };
    set("prompt_cache_key", request.cache_key(profile));
    set("temperature", temperature.map(Value::from));
    set("top_p", top_p.map(Value::from));
    set(
        "reasoning_effort",
        reasoning_effort.map(|it| it.as_str().into()),
    );
    set("service_tier", service_tier.as_deref().map(Value::from));
    set(
        "parallel_tool_calls",
        request.parallel_calls().map(Value::from),
    );
    set("stop", (!stop.is_empty()).then(|| json!(stop)));
    let seed_name = match profile.dialect {
        Dialect::OpenAi => "seed",
        Dialect::Mistral => "random_seed",
    };
    set(seed_name, seed.map(Value::from));
    merge(&mut body, Value::Object(extra_body.clone()));
    // An empty object in `extra_body` of an agent means: the server refuses `stream_options`.
    let given = extra_body.get("stream_options").and_then(Value::as_object);
    if let (Some(fields), true) = (body.as_object_mut(), given.is_some_and(Map::is_empty)) {
        fields.shift_remove("stream_options");
    }
    body
}

/// Returns the demand for a call of one tool.
fn one_tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name}})
}

fn response_format(output: &OutputFormat) -> Value {
    match &output.schema {
        Some(schema) => json!({"type": "json_schema", "json_schema": {
            "name": output.name,
            "strict": true,
            "schema": strict(schema),
        }}),
        None => json!({"type": "json_object"}),
    }
}

fn messages(conversation: Conversation, profile: &Profile) -> Vec<Value> {
    let conversation = match profile.roles {
        Roles::Any => conversation,
        Roles::Alternate => conversation.with_joined_users(),
    };
    let mut messages = Vec::new();
    if let Some(system) = &conversation.system {
        messages.push(json!({"role": "system", "content": system}));
    }
    for message in &conversation.messages {
        match message {
            Message::User(parts) => {
                let is_after_result = messages
                    .last()
                    .is_some_and(|last: &Value| last["role"] == "tool");
                if is_after_result && profile.roles == Roles::Alternate {
                    messages.push(model(Some(BETWEEN), profile));
                }
                messages.push(json!({"role": "user", "content": content(parts, profile)}));
            }
            Message::Model(reply) => push_reply(&mut messages, reply, profile),
        }
    }
    messages
}

/// Returns the content of a user's message: a text, or parts.
fn content(parts: &[UserPart], profile: &Profile) -> Value {
    match parts {
        [UserPart::Text(text)] => json!(text),
        parts => parts.iter().map(|it| part(it, profile)).collect(),
    }
}

fn part(part: &UserPart, profile: &Profile) -> Value {
    match part {
        UserPart::Text(text) => json!({"type": "text", "text": text}),
        UserPart::File(file) if file.is_image() => {
            json!({"type": "image_url", "image_url": {"url": file.url()}})
        }
        UserPart::File(file @ File { name, .. }) => match profile.dialect {
            Dialect::OpenAi => {
                json!({"type": "file", "file": {"filename": name, "file_data": file.url()}})
            }
            Dialect::Mistral => {
                json!({"type": "document_url", "document_url": file.url(), "document_name": name})
            }
        },
    }
}

/// Returns a model's message.
fn model(text: Option<&str>, profile: &Profile) -> Value {
    let mut message = json!({"role": "assistant"});
    if let Some(text) = text {
        message["content"] = json!(text);
    }
    if profile.thoughts == Thoughts::Required {
        message["reasoning_content"] = json!(NO_THOUGHTS);
    }
    message
}

/// Adds a reply, and the results of its calls in call order.
fn push_reply(messages: &mut Vec<Value>, reply: &Reply, profile: &Profile) {
    let mut message = model(reply.text.as_deref(), profile);
    if !reply.calls.is_empty() {
        message["tool_calls"] = reply.calls.iter().map(|it| call(it, profile)).collect();
    }
    for block in reply
        .calls
        .iter()
        .flat_map(|call| signatures(call, profile))
    {
        match (block["type"].as_str(), profile.thoughts) {
            (Some(REASONING_CONTENT), Thoughts::ReasoningContent | Thoughts::Required) => {
                message["reasoning_content"] = block["text"].clone();
            }
            (Some(DETAILS), _) => message["reasoning_details"] = block["details"].clone(),
            _ => {}
        }
    }
    messages.push(message);
    messages.extend(
        reply
            .calls
            .iter()
            .map(|call| json!({"role": "tool", "tool_call_id": call.id, "content": call.result})),
    );
}

/// Returns the opaque parts of a call that the provider takes.
fn signatures<'a>(call: &'a Call, profile: &Profile) -> &'a [Value] {
    match profile.thoughts {
        Thoughts::None => &[],
        Thoughts::Marked | Thoughts::ReasoningContent | Thoughts::Required => &call.signatures,
    }
}

fn call(call: &Call, profile: &Profile) -> Value {
    let mut written = json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments.as_str()},
    });
    let extra = signatures(call, profile)
        .iter()
        .find(|block| block["type"] == EXTRA_CONTENT);
    if let Some(extra) = extra {
        written["extra_content"] = extra["value"].clone();
    }
    written
}

fn tool(offered: &OfferedTool) -> Value {
    json!({"type": "function", "function": {
        "name": offered.name,
        "description": offered.description,
        "parameters": offered.parameters,
    }})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{profile::ProfileSettings, provider::ProviderKind};

    #[test]
    fn only_providers_that_know_the_key_of_a_conversation_get_it() {
        let key = |kind, host: &str, cache_key: &str| {
            let request = ModelRequest {
                model: "m".to_owned(),
                cache_key: cache_key.to_owned(),
                ..ModelRequest::default()
            };
            let profile = Profile::of(kind, host, "m", ProfileSettings::default());
            body(&request, &profile).get("prompt_cache_key").cloned()
        };
        let chat = ProviderKind::OpenAi;
        assert_eq!(key(chat, "api.openai.com", "k"), Some(json!("k")));
        assert_eq!(key(chat, "api.openai.com", ""), None);
        assert_eq!(key(chat, "api.mistral.ai", "k"), None);
        assert_eq!(key(chat, "localhost", "k"), None);
        assert_eq!(key(ProviderKind::Azure, "x", "k"), Some(json!("k")));
    }
}
