//! Headers, parameters and limits of the configuration.

use std::time::UNIX_EPOCH;

use everturn_proto::{
    Json,
    turn::{AgentDefinition, AgentOutput},
    words::FailureCode,
};

use super::*;
use crate::{
    gate::{Arrival, CallLimits, WaitLimits},
    output::OutputFormat,
    parameters::Parameters,
};

fn whole() -> Script {
    Script::named([completed(&[message("Hi")])])
}

fn with_header(server: &Server) -> Provider {
    Provider {
        base_url: Some(format!("{}?api-version=1", server.base_url())),
        api_key: Some(format!("{KEY}\n")),
        headers: [("X-Proxy-Token".to_owned(), "proxy-secret-1".to_owned())].into(),
        ..Provider::new(ProviderKind::OpenAiResponses)
    }
}

fn client_of(provider: Provider) -> ResponsesClient {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    ResponsesClient::new(&[("p".to_owned(), provider)].into()).unwrap()
}

#[tokio::test]
async fn headers_are_sent_with_each_request_and_cut_out_of_messages() {
    let error = json!({"error": {"message": format!("Token proxy-secret-1 or {KEY} is bad.")}});
    let running = Script::status(200, response("in_progress", &[]));
    let server = Server::start([running, whole(), Script::status(400, error)]).await;
    let client = client_of(with_header(&server));
    let mut recorder = Recorder::default();
    let read = client.complete(attached("resp_1"), &mut recorder).await;
    assert_eq!(read.unwrap().text, "Hi");
    let refused = client.complete(hello(), &mut recorder).await.unwrap_err();
    assert!(
        refused.message.ends_with("Token *** or *** is bad."),
        "{refused}"
    );
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    for seen in &seen {
        assert_eq!(seen.headers["x-proxy-token"], "proxy-secret-1");
        assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
        assert!(seen.path.contains("api-version=1"), "{}", seen.path);
    }
}

#[tokio::test]
async fn an_answers_schema_is_in_the_body() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": false,
    });
    let agent = AgentDefinition {
        output: Some(AgentOutput {
            name: "count".into(),
            schema: Some(Json::of(&schema)),
            as_instruction: false,
        }),
        ..AgentDefinition::default()
    };
    let request = |wants_text| ModelRequest {
        output: OutputFormat::of(&agent),
        wants_text,
        ..hello()
    };
    let asked = ask_for(true, request(false), [whole()]).await;
    let body = &asked.seen[0].1;
    let format = json!({"type": "json_schema", "name": "count", "strict": true, "schema": schema});
    assert_eq!(body["text"]["format"], format);
    assert_eq!(body.get("tool_choice"), None);
    let asked = ask_for(true, request(true), [whole()]).await;
    let body = &asked.seen[0].1;
    assert_eq!(
        (body.get("text"), &body["tool_choice"]),
        (None, &json!("none"))
    );
}

#[tokio::test]
async fn parameters_are_in_the_body() {
    let extra = json!({
        "reasoning": {"summary": "auto"}, "service_tier": "flex",
        "store": false, "background": false, "input": [], "model": "no",
    });
    let agent = AgentDefinition {
        temperature: Some(0.25),
        top_p: Some(0.5),
        reasoning_effort: Some("high".into()),
        extra_body: Some(Json::of(&extra)),
        ..AgentDefinition::default()
    };
    let request = ModelRequest {
        cache_key: "key-1".to_owned(),
        parameters: Parameters::of(&agent),
        ..hello()
    };
    let asked = ask_for(true, request, [whole()]).await;
    let body = &asked.seen[0].1;
    let expected = json!({
        "temperature": 0.25, "top_p": 0.5, "reasoning": {"effort": "high", "summary": "auto"},
        "service_tier": "flex", "store": true, "background": true, "model": "model-1",
        "prompt_cache_key": "key-1",
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&body[key], value, "{key}");
    }
    assert_eq!(body["input"].as_array().unwrap().len(), 1);

    let plain = ask(true, [whole()]).await;
    for key in ["temperature", "top_p", "reasoning", "prompt_cache_key"] {
        assert_eq!(plain.seen[0].1.get(key), None);
    }
}

#[tokio::test]
async fn thoughts_of_another_model_are_not_sent() {
    let thought = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA"});
    for (signer, is_sent) in [("p/model-1", true), ("", false), ("p/model-2", false)] {
        let mut messages = crate::client::tests::context();
        messages[1].tool_calls[0].signatures = vec![thought.to_string()];
        messages[1].tool_calls[0].signed_by = signer.to_owned();
        let asked = ask_for(false, request(messages), [whole()]).await;
        let input = asked.seen[0].1["input"].as_array().unwrap();
        let is_there = input.iter().any(|item| item["type"] == "reasoning");
        assert_eq!(is_there, is_sent, "{signer}");
    }
}

#[tokio::test]
async fn calls_over_the_limits_wait() {
    let limited = Script::status(429, "{}").header("retry-after", 3600);
    let server = Server::start([limited]).await;
    let client = client_of(Provider {
        limits: CallLimits {
            concurrent: Some(1),
            ..CallLimits::default()
        },
        ..with_header(&server)
    });
    let arrival = Arrival {
        tokens: 1,
        asked_at: UNIX_EPOCH,
        limits: WaitLimits {
            longest: Duration::from_millis(1),
            calls: 1,
        },
    };
    let is_open = async || client.admit("p", &arrival).await.is_ok();
    let admission = client.admit("p", &arrival).await.unwrap();
    assert!(!is_open().await);
    drop(admission);
    assert!(is_open().await);
    let error = client.complete(hello(), &mut Recorder::default()).await;
    assert_eq!(error.unwrap_err().code, FailureCode::LlmRateLimited);
    assert!(!is_open().await, "the provider has said how long to wait");
}
