//! Requests: what goes back to the model, the marks for the cache, and the settings.

use everturn_proto::{turn::ToolCall, words::MessageRole};
use everturn_store::ContextMessage;
use serde_json::{Value, json};

use crate::{
    client::tests::{call, context, request, user},
    parameters::{Parameters, ReasoningEffort},
    port::ModelRequest,
    profile::{Profile, ProfileSettings},
    provider::ProviderKind,
    wire,
};

fn text_of(request: &ModelRequest) -> String {
    let profile = Profile::of(
        ProviderKind::Anthropic,
        "localhost",
        &request.model,
        ProfileSettings::default(),
    );
    serde_json::to_string(&wire::body(request, &profile)).unwrap()
}

fn body(request: &ModelRequest) -> Value {
    serde_json::from_str(&text_of(request)).unwrap()
}

/// A call with thoughts before it.
fn signed(call: ToolCall, blocks: &[Value]) -> ToolCall {
    ToolCall {
        signatures: blocks.iter().map(Value::to_string).collect(),
        signed_by: "p/model-1".into(),
        ..call
    }
}

fn reply(text: &str, calls: Vec<ToolCall>) -> ContextMessage {
    ContextMessage {
        tool_calls: calls,
        ..ContextMessage::text(MessageRole::Assistant, text)
    }
}

/// The places of the marks for the cache, as JSON pointers.
fn marks(value: &Value, at: &str, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, it)| (key.clone(), it)).collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(key, it)| (key.to_string(), it))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in inner {
        if key == "cache_control" {
            assert_eq!(value, &json!({"type": "ephemeral"}));
            found.push(at.to_owned());
        } else {
            marks(value, &format!("{at}/{key}"), found);
        }
    }
}

fn marks_of(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    marks(body, "", &mut found);
    found.sort();
    found
}

#[test]
fn thoughts_go_back_before_the_call_that_followed_them() {
    let thought = |text: &str| json!({"type": "thinking", "thinking": text, "signature": "S"});
    let hidden = json!({"type": "redacted_thinking", "data": "ENC"});
    let other = json!({"type": "reasoning_content", "text": "of another wire"});
    let calls = vec![
        signed(
            call(1, "weather", "{}"),
            &[thought("one"), hidden.clone(), other],
        ),
        signed(call(2, "weather", "{}"), &[thought("two")]),
        call(3, "weather", "{}"),
    ];
    let body = body(&request(vec![
        user("Weather?"),
        reply("Let me see.", calls),
    ]));
    let tool_use = |id: &str| json!({"type": "tool_use", "id": id, "name": "weather", "input": {}});
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            thought("one"),
            hidden,
            {"type": "text", "text": "Let me see."},
            tool_use("call_1"),
            thought("two"),
            tool_use("call_2"),
            tool_use("call_3"),
        ])
    );
}

#[test]
fn digits_of_arguments_go_back_as_they_came() {
    let big = r#"{"n": 12345678901234567890123.10}"#;
    let calls = vec![call(1, "weather", big)];
    let text = text_of(&request(vec![user("Weather?"), reply("", calls)]));
    assert!(text.contains(&format!("\"input\":{big}")), "{text}");
}

#[test]
fn users_and_results_alternate_with_replies() {
    let mut messages = context();
    messages.push(user("Well?"));
    messages.push(user("Hello?"));
    let body = body(&request(messages));
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let kinds: Vec<_> = messages[2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| (block["type"].as_str().unwrap(), block["is_error"] == true))
        .collect();
    let (result, error, text) = (
        ("tool_result", false),
        ("tool_result", true),
        ("text", false),
    );
    assert_eq!(kinds, [result, result, error, error, text, text, text]);
}

#[test]
fn the_ends_of_what_stays_are_marked() {
    let first = body(&request(vec![user("Weather?")]));
    assert_eq!(
        marks_of(&first),
        ["/messages/0/content/0", "/system/0", "/tools/0"]
    );
    let long = request(context());
    assert_eq!(
        marks_of(&body(&long)),
        [
            "/messages/0/content/0",
            "/messages/2/content/4",
            "/system/0",
            "/tools/0"
        ]
    );
    // A `cache_control` of the whole request marks by itself.
    let mut own = long;
    let extra = json!({"cache_control": {"type": "ephemeral"}});
    own.parameters.extra_body = extra.as_object().unwrap().clone();
    assert_eq!(marks_of(&body(&own)), [""]);
}

#[test]
fn every_request_has_a_limit_of_tokens() {
    for (model, given, expected) in [
        ("claude-3-5-haiku-20241022", None, 8_192),
        ("claude-opus-4-8", None, 128_000),
        ("glm-4.6", None, 64_000),
        ("glm-4.6", Some(7), 7),
    ] {
        let body = body(&ModelRequest {
            model: model.into(),
            max_output_tokens: given,
            ..request(vec![user("Hello")])
        });
        assert_eq!(body["max_tokens"], expected, "{model}");
    }
}

fn with_parameters(model: &str, effort: ReasoningEffort, extra: &Value) -> ModelRequest {
    ModelRequest {
        model: model.into(),
        parameters: Parameters {
            reasoning_effort: Some(effort),
            extra_body: extra.as_object().unwrap().clone(),
            ..Parameters::default()
        },
        ..request(vec![user("Hello")])
    }
}

#[test]
fn fields_of_the_configuration_win() {
    let extra = json!({
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"task_budget": 5},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
        "service_tier": "auto",
        "max_tokens": 2048,
    });
    let mut request = with_parameters("claude-sonnet-5", ReasoningEffort::High, &extra);
    let sent = body(&request);
    for key in ["thinking", "tool_choice", "service_tier", "max_tokens"] {
        assert_eq!(sent[key], extra[key], "{key}");
    }
    assert_eq!(
        sent["output_config"],
        json!({"effort": "high", "task_budget": 5})
    );
    // A text for Everturn calls no tool in any configuration.
    request.wants_text = true;
    assert_eq!(body(&request)["tool_choice"], json!({"type": "none"}));
}

#[test]
fn calls_of_another_model_get_no_budget_for_thoughts() {
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "S"});
    let foreign = || reply("", vec![call(1, "weather", "{}")]);
    let own = |model: &str| {
        let mut call = signed(call(1, "weather", "{}"), std::slice::from_ref(&thought));
        call.signed_by = format!("p/{model}");
        reply("", vec![call])
    };
    let thinks = |model: &str, messages: Vec<ContextMessage>| {
        let asked = with_parameters(model, ReasoningEffort::Low, &json!({}));
        let request = ModelRequest { messages, ..asked };
        !body(&request)["thinking"].is_null()
    };
    let old = "claude-sonnet-4-5";
    assert!(!thinks(old, vec![user("a"), foreign()]));
    assert!(!thinks(
        old,
        vec![user("a"), foreign(), own(old), user("b")]
    ));
    assert!(thinks(old, vec![user("a"), own(old), foreign()]));
    assert!(thinks(
        old,
        vec![user("a"), foreign(), reply("Done.", vec![]), user("b")]
    ));
    assert!(thinks("claude-sonnet-5", vec![user("a"), foreign()]));
    assert!(thinks("glm-4.6", vec![user("a"), foreign()]));
}

#[test]
fn empty_instructions_are_left_out() {
    let body = body(&ModelRequest {
        instructions: Some(" ".into()),
        tools: Vec::new(),
        wants_text: true,
        ..request(vec![user("Hello")])
    });
    for key in ["system", "tools", "tool_choice"] {
        assert_eq!(body.get(key), None, "{key}");
    }
}
