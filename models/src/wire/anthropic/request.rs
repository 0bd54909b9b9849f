//! The body of a request for a message.

use everturn_proto::Json;
use serde::Serialize;
use serde_json::{Value, json};

use super::{models::Facts, thinking};
use crate::{
    conversation::{self, Call, Conversation, File, Reply, UserPart},
    parameters::{Parameters, merge},
    port::{ModelRequest, OfferedTool},
    profile::{Cache, Profile},
    strict_schema::closed,
    tool_choice::ToolChoice,
};

/// The number of users' messages that end in a mark for the cache: the newest message, and the message that was the
/// newest one in the request before. With the marks on the system and on the tools, a request has the four marks that
/// Anthropic allows.
const MARKED_MESSAGES: usize = 2;

/// The body of a request.
#[derive(Debug, Serialize)]
pub(crate) struct Body {
    messages: Vec<Message>,
    #[serde(flatten)]
    pub(crate) fields: Value,
}

/// A message.
#[derive(Debug, Serialize)]
struct Message {
    role: &'static str,
    content: Vec<Block>,
}

/// A part of a message.
#[derive(Debug, Serialize)]
struct Block {
    /// The fields of the part, without the arguments of a call.
    #[serde(flatten)]
    fields: Value,
    /// The arguments of a call, as the model wrote them: a tree would lose digits of large numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Json>,
}

/// Returns the body of a request for a streamed reply.
pub(crate) fn body(request: &ModelRequest, profile: &Profile) -> Body {
    let conversation = Conversation::of(request, profile);
    let mut fields = json!({"model": request.model, "stream": true});
    if let Some(system) = conversation.system.as_deref().filter(|it| has_letters(it)) {
        fields["system"] = json!([{"type": "text", "text": system}]);
    }
    if !request.tools.is_empty() {
        fields["tools"] = request.tools.iter().map(tool).collect();
    }
    let output = request.schema_field(profile.kind);
    if let Some(schema) = output.and_then(|output| output.schema.as_ref()) {
        let schema = closed(schema);
        fields["output_config"]["format"] = json!({"type": "json_schema", "schema": schema});
    }
    if let Some(choice) = tool_choice(request) {
        fields["tool_choice"] = choice;
    }
    set_parameters(&mut fields, request, &conversation);
    let extra_body = &request.parameters.extra_body;
    // The fields of one kind of thinking do not fit another kind.
    if extra_body.contains_key("thinking") {
        fields["thinking"] = Value::Null;
    }
    merge(&mut fields, Value::Object(extra_body.clone()));
    // A summary needs a text, whatever the configuration says.
    if request.wants_text && !request.tools.is_empty() {
        fields["tool_choice"] = json!({"type": "none"});
    }
    let mut messages = messages(&conversation);
    // A `cache_control` of the whole request sets the marks itself.
    if profile.cache == Cache::Marks && !extra_body.contains_key("cache_control") {
        mark(&mut fields, &mut messages);
    }
    Body { messages, fields }
}

/// Adds the settings for the model's writing. Anthropic has no seed.
fn set_parameters(fields: &mut Value, request: &ModelRequest, conversation: &Conversation) {
    let Parameters {
        temperature,
        top_p,
        reasoning_effort: _,
        thinking_budget: _,
        service_tier,
        stop,
        parallel_tool_calls: _,
        seed: _,
        extra_body: _,
    } = &request.parameters;
    let facts = Facts::about(&request.model);
    let max_tokens = request.max_output_tokens.unwrap_or(facts.max_tokens);
    fields["max_tokens"] = json!(max_tokens);
    set_thinking(fields, request, conversation, max_tokens);
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields[key] = value;
        }
    };
    set("temperature", temperature.map(Value::from));
    set("top_p", top_p.map(Value::from));
    set("service_tier", service_tier.as_deref().map(Value::from));
    set("stop_sequences", (!stop.is_empty()).then(|| json!(stop)));
}

/// Adds the settings of the thinking. Anthropic refuses thinking in a request that demands a tool call.
fn set_thinking(
    fields: &mut Value,
    request: &ModelRequest,
    conversation: &Conversation,
    max_tokens: u32,
) {
    let facts = Facts::about(&request.model);
    let Parameters {
        reasoning_effort,
        thinking_budget,
        ..
    } = request.parameters;
    let asked = match (thinking_budget, reasoning_effort) {
        (Some(budget), _) => thinking::with_budget(budget, max_tokens),
        (None, Some(effort)) => thinking::fields(effort, facts, max_tokens),
        (None, None) => thinking::Fields::default(),
    };
    if let Some(word) = asked.effort {
        fields["output_config"]["effort"] = json!(word);
    }
    let has_budget = thinking_budget.is_some() || facts.needs_thoughts();
    let is_refused = has_budget && has_unsigned_calls(conversation);
    let thinking = if request.demand().is_some_and(ToolChoice::is_forced) {
        thinking::off(facts)
    } else {
        asked.thinking.filter(|_| !is_refused)
    };
    if let Some(thinking) = thinking {
        fields["thinking"] = thinking;
    }
}

/// Returns the demand on the tool calls of the reply.
fn tool_choice(request: &ModelRequest) -> Option<Value> {
    let is_single = request.parallel_calls() == Some(false);
    let mut choice = match request.demand() {
        None if !is_single => return None,
        None | Some(ToolChoice::Auto) => json!({"type": "auto"}),
        Some(ToolChoice::Required) => json!({"type": "any"}),
        Some(ToolChoice::Tool(name)) => json!({"type": "tool", "name": name}),
        Some(ToolChoice::None) => return Some(json!({"type": "none"})),
    };
    if is_single {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    Some(choice)
}

/// True when the calls since the last answer begin without thoughts, because another model wrote them. With a budget for
/// thinking, Anthropic refuses these calls.
fn has_unsigned_calls(conversation: &Conversation) -> bool {
    let replies = conversation.messages.iter().rev();
    let replies = replies.filter_map(|message| match message {
        conversation::Message::User(_) => None,
        conversation::Message::Model(reply) => Some(reply),
    });
    let since_answer = replies.take_while(|reply| !reply.calls.is_empty());
    let first = since_answer.last().and_then(|reply| reply.calls.first());
    first.is_some_and(|call| !call.signatures.iter().any(is_thought))
}

fn is_thought(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

fn has_letters(text: &str) -> bool {
    !text.trim().is_empty()
}

fn messages(conversation: &Conversation) -> Vec<Message> {
    let mut messages = Vec::new();
    for message in &conversation.messages {
        match message {
            conversation::Message::User(parts) => {
                push(&mut messages, "user", parts.iter().map(part).collect());
            }
            conversation::Message::Model(reply) => {
                push(&mut messages, "assistant", content(reply));
                let results = reply.calls.iter().map(result);
                push(&mut messages, "user", results.collect());
            }
        }
    }
    messages
}

/// Adds parts to the last message if it has the role, else adds a message. The parts stay apart, so that the cache
/// knows the beginning of a message that has grown.
fn push(messages: &mut Vec<Message>, role: &'static str, content: Vec<Block>) {
    match messages.last_mut() {
        _ if content.is_empty() => {}
        Some(last) if last.role == role => last.content.extend(content),
        _ => messages.push(Message { role, content }),
    }
}

fn part(part: &UserPart) -> Block {
    match part {
        UserPart::Text(text) => text_block(text),
        UserPart::File(
            file @ File {
                media_type, data, ..
            },
        ) => {
            let kind = if file.is_image() { "image" } else { "document" };
            Block::from(json!({
                "type": kind,
                "source": {"type": "base64", "media_type": media_type, "data": &**data},
            }))
        }
    }
}

/// Returns the parts of a reply. Anthropic wants the thoughts back before the call that followed them.
fn content(reply: &Reply) -> Vec<Block> {
    let mut text = reply.text.as_deref().map(text_block);
    let mut blocks = Vec::new();
    for call in &reply.calls {
        let thoughts = call.signatures.iter().filter(|block| is_thought(block));
        blocks.extend(thoughts.cloned().map(Block::from));
        blocks.extend(text.take());
        blocks.push(tool_use(call));
    }
    blocks.extend(text);
    blocks
}

fn text_block(text: &str) -> Block {
    Block::from(json!({"type": "text", "text": text}))
}

fn tool_use(call: &Call) -> Block {
    Block {
        fields: json!({"type": "tool_use", "id": call.id, "name": call.name}),
        input: Some(call.arguments.clone()),
    }
}

fn result(call: &Call) -> Block {
    let mut fields = json!({"type": "tool_result", "tool_use_id": call.id, "content": call.result});
    if call.is_error {
        fields["is_error"] = json!(true);
    }
    Block::from(fields)
}

fn tool(offered: &OfferedTool) -> Value {
    json!({
        "name": offered.name,
        "description": offered.description,
        "input_schema": offered.parameters,
    })
}

impl From<Value> for Block {
    fn from(fields: Value) -> Self {
        Self {
            fields,
            input: None,
        }
    }
}

/// Marks the ends of the parts that the next request repeats: the system, the tools, and the newest messages.
fn mark(fields: &mut Value, messages: &mut [Message]) {
    for key in ["system", "tools"] {
        let parts = fields.get_mut(key).and_then(Value::as_array_mut);
        if let Some(last) = parts.and_then(|parts| parts.last_mut()) {
            mark_end(last);
        }
    }
    let of_users = messages.iter_mut().rev().filter(|it| it.role == "user");
    for message in of_users.take(MARKED_MESSAGES) {
        if let Some(last) = message.content.last_mut() {
            mark_end(&mut last.fields);
        }
    }
}

fn mark_end(part: &mut Value) {
    part["cache_control"] = json!({"type": "ephemeral"});
}
