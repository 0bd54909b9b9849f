//! The body of a request for a streamed reply of Gemini.

use serde_json::{Value, json};

use super::thinking;
use crate::{
    conversation::{Call, Conversation, File, Message, Reply, UserPart},
    parameters::{Parameters, merge},
    port::{ModelRequest, OfferedTool},
    profile::Profile,
    tool_choice::ToolChoice,
};

/// The signature of a call that another model has made. Google's documentation names the word for this use.
const FOREIGN: &str = "skip_thought_signature_validator";

/// Returns the body of a request for a streamed reply.
pub(crate) fn body(request: &ModelRequest, profile: &Profile) -> Value {
    let conversation = Conversation::of(request, profile);
    let needs_signatures = needs_signatures(&request.model);
    let contents = conversation.messages.iter();
    let contents = contents.flat_map(|message| contents_of(message, needs_signatures));
    let mut body = json!({"contents": contents.collect::<Vec<Value>>()});
    if let Some(system) = &conversation.system {
        body["systemInstruction"] = json!({"parts": [{"text": system}]});
    }
    // Gemini refuses an empty list.
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
    }
    if let Some(demand) = request.demand() {
        body["toolConfig"] = json!({"functionCallingConfig": mode(demand)});
    }
    body["generationConfig"] = config(request, profile);
    merge(
        &mut body,
        Value::Object(request.parameters.extra_body.clone()),
    );
    body
}

fn mode(demand: &ToolChoice) -> Value {
    match demand {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    }
}

fn config(request: &ModelRequest, profile: &Profile) -> Value {
    let Parameters {
        temperature,
        top_p,
        reasoning_effort,
        thinking_budget,
        stop,
        seed,
        extra_body,
        // Gemini has neither field; the configuration check refuses the parameters.
        service_tier: _,
        parallel_tool_calls: _,
    } = &request.parameters;
    // Gemini refuses a request with two amounts of thinking.
    let given = &extra_body.get("generationConfig").unwrap_or(&Value::Null)["thinkingConfig"];
    let has_amount = !given["thinkingBudget"].is_null() || !given["thinkingLevel"].is_null();
    let effort = reasoning_effort.filter(|_| !has_amount);
    let thinking = match thinking_budget.filter(|_| !has_amount) {
        Some(tokens) => Some(thinking::with_budget(tokens)),
        None => thinking::settings(&request.model, effort),
    };
    let output = request.schema_field(profile.kind);
    let fields = [
        ("temperature", temperature.map(Value::from)),
        ("topP", top_p.map(Value::from)),
        ("seed", seed.map(Value::from)),
        ("stopSequences", (!stop.is_empty()).then(|| json!(stop))),
        (
            "maxOutputTokens",
            request.max_output_tokens.map(Value::from),
        ),
        ("thinkingConfig", thinking),
        (
            "responseMimeType",
            output.map(|_| "application/json".into()),
        ),
        (
            "responseJsonSchema",
            output.and_then(|output| output.schema.clone()),
        ),
    ];
    let fields = fields.into_iter();
    fields
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// True for models that refuse calls without a signature: Gemini 3 and later. A name without a number, like
/// `gemini-flash-latest`, is a later model's.
fn needs_signatures(model: &str) -> bool {
    let model = model.to_lowercase();
    let is_older = ["gemini-1.", "gemini-2.", "gemini-exp"];
    model.contains("gemini") && !is_older.iter().any(|family| model.contains(family))
}

/// Returns the contents of a message: a user's content, or a model's content and the results of its calls.
fn contents_of(message: &Message, needs_signatures: bool) -> Vec<Value> {
    match message {
        Message::User(parts) => {
            let parts: Vec<Value> = parts.iter().map(part).collect();
            vec![json!({"role": "user", "parts": parts})]
        }
        Message::Model(reply) => {
            let model = json!({"role": "model", "parts": parts_of(reply, needs_signatures)});
            if reply.calls.is_empty() {
                return vec![model];
            }
            let results: Vec<Value> = reply.calls.iter().map(result).collect();
            vec![model, json!({"role": "user", "parts": results})]
        }
    }
}

fn part(part: &UserPart) -> Value {
    match part {
        UserPart::Text(text) => json!({"text": text}),
        UserPart::File(File {
            media_type, data, ..
        }) => json!({"inlineData": {"mimeType": media_type, "data": &**data}}),
    }
}

fn parts_of(reply: &Reply, needs_signatures: bool) -> Vec<Value> {
    let text = reply.text.iter().map(|text| json!({"text": text}));
    let mut parts: Vec<Value> = text.collect();
    let mut first = Some(FOREIGN).filter(|_| needs_signatures);
    for call in &reply.calls {
        // The arguments become a protobuf `Struct`, whose numbers are doubles. Further digits would be lost there.
        let arguments = call.arguments.to_value();
        let mut part = json!({"functionCall": {"name": call.name, "args": arguments}});
        if let Some(id) = id(call) {
            part["functionCall"]["id"] = id.into();
        }
        if let Some(signature) = signature(call).or(first.take()) {
            part["thoughtSignature"] = signature.into();
        }
        parts.push(part);
    }
    parts
}

fn result(call: &Call) -> Value {
    let response = json!({"name": call.name, "content": call.result});
    let mut part = json!({"functionResponse": {"name": call.name, "response": response}});
    if let Some(id) = id(call) {
        part["functionResponse"]["id"] = id.into();
    }
    part
}

/// Returns the id of a call; `None` when the model gave no id. Gemini then matches calls and results by their order.
fn id(call: &Call) -> Option<&str> {
    Some(&*call.id).filter(|id| !call.has_own_id && !id.is_empty())
}

fn signature(call: &Call) -> Option<&str> {
    let mut texts = call.signatures.iter().filter_map(Value::as_str);
    texts.find(|text| !text.is_empty())
}

fn tool(offered: &OfferedTool) -> Value {
    json!({
        "name": offered.name,
        "description": offered.description,
        "parametersJsonSchema": offered.parameters,
    })
}

#[cfg(test)]
mod tests {
    use everturn_proto::words::MessageRole;
    use everturn_store::ContextMessage;

    use super::*;
    use crate::{
        client::tests::{call, request, user},
        profile::ProfileSettings,
        provider::ProviderKind,
    };

    /// The body for a model that reads two calls, the first with a signature by `signed_by`.
    fn read_by(model: &str, signed_by: &str) -> Value {
        let mut calls = vec![call(1, "weather", "{}"), call(2, "weather", "{}")];
        calls[0].signatures = vec!["c2ln".into()];
        calls[0].signed_by = signed_by.into();
        let reply = ContextMessage {
            tool_calls: calls,
            ..ContextMessage::text(MessageRole::Assistant, "Hm.")
        };
        let mut request = request(vec![user("a"), reply.clone(), user("b"), reply]);
        request.model = model.into();
        body(
            &request,
            &Profile::of(ProviderKind::Gemini, "x", model, ProfileSettings::default()),
        )
    }

    #[test]
    fn only_gemini_3_gets_a_signature_for_the_calls_of_other_models() {
        let other = "p/claude";
        for (model, signed_by, expected) in [
            ("gemini-3-flash", other, json!(FOREIGN)),
            ("gemini-3-flash", "p/gemini-3-flash", json!("c2ln")),
            ("gemini-3.5-pro-preview", other, json!(FOREIGN)),
            ("gemini-4", other, json!(FOREIGN)),
            ("gemini-flash-latest", other, json!(FOREIGN)),
            ("gemini-2.5-flash", other, Value::Null),
            ("gemini-2.5-flash", "p/gemini-2.5-flash", json!("c2ln")),
            ("model-1", other, Value::Null),
        ] {
            let body = read_by(model, signed_by);
            for content in [1, 4] {
                let parts = &body["contents"][content]["parts"];
                assert_eq!(parts[0], json!({"text": "Hm."}), "{model}");
                let signatures = [&parts[1], &parts[2]].map(|it| &it["thoughtSignature"]);
                assert_eq!(signatures, [&expected, &Value::Null], "{model} {signed_by}");
            }
        }
    }

    #[test]
    fn fields_of_the_agent_win_object_by_object() {
        let mut request = request(vec![user("a")]);
        request.wants_text = true;
        request.parameters.reasoning_effort = Some(crate::parameters::ReasoningEffort::High);
        let extra = json!({
            "generationConfig": {"topK": 1, "thinkingConfig": {"thinkingBudget": 5}},
            "toolConfig": {"retrievalConfig": {"languageCode": "en"}},
        });
        request.parameters.extra_body = extra.as_object().unwrap().clone();
        let body = body(
            &request,
            &Profile::of(ProviderKind::Gemini, "x", "m", ProfileSettings::default()),
        );
        let thinking = json!({"includeThoughts": true, "thinkingBudget": 5});
        assert_eq!(
            body["generationConfig"],
            json!({"topK": 1, "thinkingConfig": thinking})
        );
        assert_eq!(
            body["toolConfig"],
            json!({"functionCallingConfig": {"mode": "NONE"}, "retrievalConfig": {"languageCode": "en"}})
        );
    }
}
