//! The parameters of a call in the body of each kind of request.

// Literals read better in a test than references to them.
#![allow(clippy::needless_pass_by_value)]

use everturn_proto::{Json, turn::AgentDefinition};
use serde_json::{Value, json};

use super::{Script, Server, client, hear, request, user};
use crate::{
    parameters::{Parameters, ReasoningEffort},
    provider::ProviderKind,
};

/// The body of a request with these parameters.
async fn body(kind: ProviderKind, model: &str, parameters: Parameters) -> Value {
    let server = Server::start([Script::sse::<Value>([])]).await;
    let mut request = request(vec![user("Hello")]);
    request.model = model.to_owned();
    request.max_output_tokens = Some(99);
    request.parameters = parameters;
    let (_, reply) = hear(&client(kind, server.base_url()), request).await;
    assert!(reply.is_err(), "the server sends nothing");
    server.seen().remove(0).body
}

fn all(extra_body: Value) -> Parameters {
    let agent = AgentDefinition {
        temperature: Some(0.25),
        top_p: Some(0.5),
        reasoning_effort: Some("high".into()),
        stop: vec!["END".into(), "STOP".into()],
        seed: Some(7),
        service_tier: Some("auto".into()),
        parallel_tool_calls: Some(false),
        extra_body: Some(Json::of(&extra_body)),
        ..AgentDefinition::default()
    };
    Parameters::of(&agent)
}

fn assert_has(body: &Value, expected: Value) {
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&body[key], value, "{key} of {body}");
    }
}

#[tokio::test]
async fn on_openais_wire() {
    for kind in [ProviderKind::OpenAi, ProviderKind::Azure] {
        let extra = json!({"metadata": {"a": 1}, "model": "no", "messages": []});
        let body = body(kind, "gpt-5-mini", all(extra)).await;
        let expected = json!({
            "temperature": 0.25, "top_p": 0.5, "reasoning_effort": "high", "stop": ["END", "STOP"], "seed": 7,
            "max_completion_tokens": 99, "service_tier": "auto", "parallel_tool_calls": false, "metadata": {"a": 1},
            "model": "gpt-5-mini",
        });
        assert_has(&body, expected);
        assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn on_anthropics_wire() {
    let extra = json!({"metadata": {"user_id": "u"}, "stream": false});
    let parameters = Parameters {
        seed: None,
        ..all(extra)
    };
    let body = body(ProviderKind::Anthropic, "claude-sonnet-5", parameters).await;
    let expected = json!({
        "temperature": 0.25, "top_p": 0.5, "stop_sequences": ["END", "STOP"], "max_tokens": 99,
        "output_config": {"effort": "high"}, "metadata": {"user_id": "u"}, "model": "claude-sonnet-5", "stream": true,
        "service_tier": "auto", "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
    });
    assert_has(&body, expected);
    assert_eq!(body["thinking"]["type"], "adaptive");
}

#[tokio::test]
async fn on_geminis_wire() {
    let extra = json!({
        "generationConfig": {"topK": 40, "thinkingConfig": {"includeThoughts": false}},
        "safetySettings": [],
        "contents": [],
    });
    let body = body(ProviderKind::Gemini, "gemini-3-pro", all(extra)).await;
    let config = json!({
        "temperature": 0.25, "topP": 0.5, "seed": 7, "stopSequences": ["END", "STOP"], "maxOutputTokens": 99,
        "topK": 40, "thinkingConfig": {"includeThoughts": false, "thinkingLevel": "HIGH"},
    });
    assert_has(
        &body,
        json!({"generationConfig": config, "safetySettings": []}),
    );
    assert_eq!(body["contents"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn geminis_families_are_told_how_much_to_think_in_their_own_way() {
    let high = Some(ReasoningEffort::High);
    for (model, effort, expected) in [
        (
            "gemini-2.5-flash",
            high,
            json!({"includeThoughts": true, "thinkingBudget": 24576}),
        ),
        (
            "gemini-3-flash",
            high,
            json!({"includeThoughts": true, "thinkingLevel": "HIGH"}),
        ),
        ("gemini-2.5-flash", None, json!({"includeThoughts": true})),
        ("gemini-2.0-flash", None, Value::Null),
    ] {
        let parameters = Parameters {
            reasoning_effort: effort,
            ..Parameters::default()
        };
        let body = body(ProviderKind::Gemini, model, parameters).await;
        assert_eq!(
            body["generationConfig"]["thinkingConfig"], expected,
            "{model}"
        );
    }
}

#[tokio::test]
async fn an_agent_leaves_out_the_options_of_a_stream() {
    let body = body(
        ProviderKind::OpenAi,
        "m",
        all(json!({"stream_options": {}})),
    )
    .await;
    assert_eq!(body.get("stream_options"), None, "{body}");
}

#[tokio::test]
async fn without_parameters_nothing_is_sent_of_them() {
    for kind in ProviderKind::ALL {
        let body = body(kind, "model-1", Parameters::default()).await;
        let text = body.to_string();
        for key in [
            "temperature",
            "top_p",
            "topP",
            "effort",
            "stop\"",
            "stop_sequences",
            "seed",
            "thinkingLevel",
            "budget",
            "service_tier",
            "parallel",
            "tool_choice",
            "toolConfig",
        ] {
            assert!(!text.contains(key), "{kind:?} {key}: {text}");
        }
    }
}

/// The provider decides about caching.
#[tokio::test]
async fn the_prompt_caching_of_openai_stays_on() {
    for model in ["gpt-5.6", "gpt-6-mini"] {
        let body = body(ProviderKind::OpenAi, model, Parameters::default()).await;
        assert_eq!(body.get("prompt_cache_options"), None);
        assert_eq!(body["max_completion_tokens"], 99);
        assert_eq!(body["model"], model);
    }
}
