//! Where requests go and which headers they have, for each kind of provider.

use serde_json::Value;

use super::{KEY, Script, Server, hear, request, user};
use crate::{
    client::StreamingClient,
    provider::{Provider, ProviderKind},
};

/// The path and the headers of a request to this provider at a test's server.
async fn sent(provider: Provider, query: &str, model: &str) -> super::server::Seen {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let server = Server::start([Script::sse::<Value>([])]).await;
    let provider = Provider {
        base_url: Some(format!("{}{query}", server.base_url())),
        ..provider
    };
    let client = StreamingClient::new(&[("p".to_owned(), provider)].into()).unwrap();
    let mut request = request(vec![user("Hello")]);
    request.model = model.to_owned();
    let (_, reply) = hear(&client, request).await;
    assert!(reply.is_err(), "the server sends nothing");
    server.seen().remove(0)
}

fn with_key(kind: ProviderKind) -> Provider {
    Provider {
        api_key: Some(format!("{KEY}\n")),
        ..Provider::new(kind)
    }
}

#[tokio::test]
async fn each_kind_has_its_path_and_a_header_for_its_key() {
    for (kind, path, header, value) in [
        (
            ProviderKind::OpenAi,
            "/v1/chat/completions",
            "authorization",
            format!("Bearer {KEY}"),
        ),
        (
            ProviderKind::Azure,
            "/v1/chat/completions",
            "api-key",
            KEY.to_owned(),
        ),
        (
            ProviderKind::Anthropic,
            "/v1/messages",
            "x-api-key",
            KEY.to_owned(),
        ),
        (
            ProviderKind::Gemini,
            "/v1/models/model-1:streamGenerateContent?alt=sse",
            "x-goog-api-key",
            KEY.to_owned(),
        ),
    ] {
        let seen = sent(with_key(kind), "", "model-1").await;
        assert_eq!(seen.path, path);
        assert_eq!(seen.headers[header], value, "{kind:?}");
        let with_key = seen.headers.values();
        let with_key = with_key.filter(|value| value.to_str().unwrap().contains(KEY));
        assert_eq!(with_key.count(), 1, "{kind:?}");

        let seen = sent(Provider::new(kind), "", "model-1").await;
        assert!(!seen.headers.contains_key(header), "without a key");
    }
}

#[tokio::test]
async fn the_query_of_the_base_url_stays() {
    let query = "/openai/deployments/small?api-version=2024-10-21";
    let seen = sent(with_key(ProviderKind::Azure), query, "small").await;
    assert_eq!(
        seen.path,
        "/v1/openai/deployments/small/chat/completions?api-version=2024-10-21"
    );
    let seen = sent(with_key(ProviderKind::Gemini), "?a=b", "m").await;
    assert_eq!(seen.path, "/v1/models/m:streamGenerateContent?a=b&alt=sse");
}

#[tokio::test]
async fn geminis_model_is_in_the_path_to_the_letter() {
    for (model, path) in [
        ("a-model-high", "/v1/models/a-model-high"),
        ("tunedModels/mine", "/v1/tunedModels/mine"),
        ("x?y", "/v1/models/x%3Fy"),
    ] {
        let seen = sent(with_key(ProviderKind::Gemini), "", model).await;
        assert_eq!(seen.path, format!("{path}:streamGenerateContent?alt=sse"));
        assert_eq!(seen.body.get("model"), None);
    }
}

#[tokio::test]
async fn a_name_is_sent_to_the_letter_and_nothing_is_made_of_it() {
    let name = "vendor::Odd/Name-high";
    for kind in [
        ProviderKind::OpenAi,
        ProviderKind::Azure,
        ProviderKind::Anthropic,
    ] {
        let body = sent(with_key(kind), "", name).await.body;
        assert_eq!(body["model"], name);
        for made in ["reasoning_effort", "thinking", "output_config"] {
            assert_eq!(body.get(made), None, "{kind:?}");
        }
    }
}

#[tokio::test]
async fn headers_of_the_configuration_are_sent_and_cut_out_of_messages() {
    let provider = |kind| Provider {
        headers: [
            ("X-Proxy-Token".to_owned(), "proxy-secret-1".to_owned()),
            ("anthropic-version".to_owned(), "2099-01-01".to_owned()),
        ]
        .into(),
        ..with_key(kind)
    };
    for kind in ProviderKind::ALL {
        let seen = sent(provider(kind), "", "m").await;
        assert_eq!(seen.headers["x-proxy-token"], "proxy-secret-1");
        assert_eq!(seen.headers["anthropic-version"], "2099-01-01");
        assert_eq!(seen.headers.get_all("anthropic-version").iter().count(), 1);
    }

    let error = r#"{"error": {"message": "Token proxy-secret-1 is bad."}}"#;
    let server = Server::start([Script::status(400, error)]).await;
    let provider = Provider {
        base_url: Some(server.base_url()),
        ..provider(ProviderKind::OpenAi)
    };
    let client = StreamingClient::new(&[("p".to_owned(), provider)].into()).unwrap();
    let error = hear(&client, request(vec![user("Hello")])).await.1;
    let message = error.unwrap_err().message;
    assert!(message.ends_with("Token *** is bad."), "{message}");
}

#[test]
fn a_header_that_cannot_be_sent_is_refused_without_its_value() {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    for (name, value) in [("x token", "good"), ("x-token", "bad\nvalue")] {
        let provider = Provider {
            headers: [(name.to_owned(), value.to_owned())].into(),
            ..Provider::new(ProviderKind::OpenAi)
        };
        let error = StreamingClient::new(&[("p".to_owned(), provider)].into());
        let error = error.err().unwrap().to_string();
        assert!(error.contains(name) && !error.contains(value), "{error}");
    }
    let azure = Provider::new(ProviderKind::Azure);
    let error = StreamingClient::new(&[("p".to_owned(), azure)].into());
    assert!(error.err().unwrap().to_string().contains("base_url"));
}
