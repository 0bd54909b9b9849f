//! What an answer has to be, and that no tool may be called, in the body of each kind of request.

use serde_json::{Value, json};

use super::{Script, Server, client, hear, request, user};
use crate::{output::OutputFormat, port::ModelRequest, provider::ProviderKind};

const KINDS: [ProviderKind; 4] = [
    ProviderKind::OpenAi,
    ProviderKind::Azure,
    ProviderKind::Anthropic,
    ProviderKind::Gemini,
];

async fn body(kind: ProviderKind, request: ModelRequest) -> Value {
    let server = Server::start([Script::sse::<Value>([])]).await;
    let (_, reply) = hear(&client(kind, server.base_url()), request).await;
    assert!(reply.is_err(), "the server sends nothing");
    server.seen().remove(0).body
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": false,
    })
}

fn asking(as_instruction: bool) -> ModelRequest {
    let output = OutputFormat {
        name: "count".into(),
        schema: Some(schema()),
        as_instruction,
    };
    ModelRequest {
        output: Some(output),
        ..request(vec![user("Count.")])
    }
}

/// The field with the schema.
fn field(kind: ProviderKind, body: &Value) -> &Value {
    match kind {
        ProviderKind::Anthropic => &body["output_config"]["format"],
        ProviderKind::Gemini => &body["generationConfig"]["responseJsonSchema"],
        _ => &body["response_format"],
    }
}

fn says_it_in_words(body: &Value) -> bool {
    body.to_string().contains("must be one JSON object")
}

#[tokio::test]
async fn providers_get_the_schema() {
    for kind in KINDS {
        let with_tools = body(kind, asking(false)).await;
        let bare = ModelRequest {
            tools: Vec::new(),
            ..asking(false)
        };
        let without_tools = body(kind, bare).await;
        let expected = match kind {
            ProviderKind::Anthropic => json!({"type": "json_schema", "schema": schema()}),
            ProviderKind::Gemini => schema(),
            _ => json!({
                "type": "json_schema",
                "json_schema": {"name": "count", "strict": true, "schema": schema()},
            }),
        };
        assert_eq!(field(kind, &without_tools), &expected, "{without_tools:#}");
        assert!(!says_it_in_words(&without_tools));
        // Gemini refuses it beside tools.
        let is_told = kind == ProviderKind::Gemini;
        assert_eq!(says_it_in_words(&with_tools), is_told, "{with_tools:#}");
        assert_eq!(field(kind, &with_tools).is_null(), is_told);
    }
}

#[tokio::test]
async fn models_are_told_in_words_where_the_agent_says_so() {
    for kind in KINDS {
        let body = body(kind, asking(true)).await;
        assert!(says_it_in_words(&body), "{body:#}");
        assert!(field(kind, &body).is_null());
        assert!(body.to_string().contains("Be brief."));
    }
}

#[tokio::test]
async fn a_text_for_everturn_has_no_schema_and_calls_no_tools() {
    for kind in KINDS {
        let asking = ModelRequest {
            wants_text: true,
            ..asking(false)
        };
        let with_tools = body(kind, asking.clone()).await;
        let (choice, none) = match kind {
            ProviderKind::Anthropic => (&with_tools["tool_choice"], json!({"type": "none"})),
            ProviderKind::Gemini => (
                &with_tools["toolConfig"],
                json!({"functionCallingConfig": {"mode": "NONE"}}),
            ),
            _ => (&with_tools["tool_choice"], json!("none")),
        };
        assert_eq!(choice, &none);
        assert!(field(kind, &with_tools).is_null());
        assert!(
            !with_tools["tools"].is_null(),
            "the request begins as before"
        );
        let bare = ModelRequest {
            tools: Vec::new(),
            ..asking
        };
        let bare = body(kind, bare).await;
        assert!(bare["tool_choice"].is_null() && bare["toolConfig"].is_null());
    }
}
