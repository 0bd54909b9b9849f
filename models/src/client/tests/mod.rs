//! The client against a server that answers what a test wrote, byte by byte.

mod anthropic;
mod classes;
mod demands;
mod errors;
pub(crate) mod files;
mod gemini;
mod openai;
mod output;
mod parameters;
pub(crate) mod server;
mod wires;

use everturn_proto::{Json, turn::ToolCall, words::MessageRole};
use everturn_store::{ContextMessage, ToolResult};
use everturn_stream::Part;
use serde_json::json;

use super::*;
use crate::{endpoint::base_url, port::OfferedTool, provider::Provider};
use server::{Script, Server};

pub(crate) const KEY: &str = "sk-secret-0123456789";

/// A call's deltas and its end.
type Heard = (Vec<(Part, String)>, Result<ModelReply, ModelError>);

fn client(kind: ProviderKind, base_url: String) -> StreamingClient {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let provider = Provider {
        base_url: Some(base_url),
        api_key: Some(KEY.to_owned()),
        ..Provider::new(kind)
    };
    StreamingClient::new(&[("p".to_owned(), provider)].into()).unwrap()
}

pub(crate) fn request(messages: Vec<ContextMessage>) -> ModelRequest {
    ModelRequest {
        provider: "p".into(),
        model: "model-1".into(),
        instructions: Some("Be brief.".into()),
        messages,
        tools: vec![OfferedTool {
            name: "weather".into(),
            description: "Tells the weather.".into(),
            parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
        }],
        max_output_tokens: None,
        ..ModelRequest::default()
    }
}

pub(crate) fn user(content: &str) -> ContextMessage {
    ContextMessage::text(MessageRole::User, content)
}

pub(crate) fn call(number: u32, name: &str, input: &str) -> ToolCall {
    ToolCall {
        execution_id: format!("exec_{number:012}"),
        call_id: format!("call_{number}"),
        tool_name: name.into(),
        tool_input: Json::parse(input).ok(),
        ..ToolCall::default()
    }
}

fn result(number: u32, result: &str, is_error: bool) -> ToolResult {
    ToolResult {
        execution_id: format!("exec_{number:012}"),
        call_id: format!("call_{number}"),
        tool_name: "weather".into(),
        result: Json::parse(result).unwrap(),
        is_error,
    }
}

/// A conversation with everything in it; the results are not in call order, and one is missing.
pub(crate) fn context() -> Vec<ContextMessage> {
    let assistant = ContextMessage {
        tool_calls: vec![
            call(1, "weather", r#"{"city":"Oslo","id":9007199254740993}"#),
            call(2, "weather", r#""{\"city\":\"Ro""#),
            call(3, "no such tool", "{}"),
            call(4, "weather", "{}"),
        ],
        tool_results: vec![
            result(3, r#"{"error":"There is no tool."}"#, true),
            result(1, r#"{"t":12}"#, false),
            result(2, r#""plain text""#, false),
        ],
        ..ContextMessage::text(MessageRole::Assistant, "Let me see.")
    };
    let empty = ContextMessage {
        role: MessageRole::Assistant,
        ..user("")
    };
    vec![user("Weather?"), assistant, empty, user("And now?")]
}

async fn hear(client: &StreamingClient, request: ModelRequest) -> Heard {
    let mut deltas = Vec::new();
    let mut emit_delta = |part: Part, piece: &str| deltas.push((part, piece.to_owned()));
    let reply = client.complete(request, &mut emit_delta).await;
    (deltas, reply)
}

/// One call to a server with this script.
async fn ask(kind: ProviderKind, script: Script) -> (Server, Heard) {
    let server = Server::start([script]).await;
    let heard = hear(
        &client(kind, server.base_url()),
        request(vec![user("Hello")]),
    )
    .await;
    (server, heard)
}

#[test]
fn base_urls_end_in_a_slash_and_are_checked() {
    let ok = |text: &str| base_url(text).unwrap().to_string();
    assert_eq!(
        ok("https://api.example.com/v1"),
        "https://api.example.com/v1/"
    );
    assert_eq!(
        ok(" http://127.0.0.1:8080/v1/ "),
        "http://127.0.0.1:8080/v1/"
    );
    assert_eq!(
        ok("https://x.example.com/openai?api-version=1"),
        "https://x.example.com/openai/?api-version=1"
    );
    for bad in [
        "",
        "api.example.com/v1",
        "ftp://example.com",
        "https://user:pass@example.com/",
    ] {
        assert!(base_url(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_key_that_is_no_key_is_refused_without_showing_it() {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let provider = Provider {
        api_key: Some("sk-abc\ndef".into()),
        ..Provider::new(ProviderKind::OpenAi)
    };
    let error = StreamingClient::new(&[("p".to_owned(), provider)].into())
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("provider `p`") && !error.to_string().contains("abc"),
        "{error}"
    );
}
