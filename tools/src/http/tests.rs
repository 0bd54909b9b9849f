//! HTTP tools against a real server: what is sent, and what becomes of the answers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap as Headers, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::any,
};
use everturn_proto::words::Effect;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::{egress::EgressPolicy, testing::context};

const SECRET: &str = "s3cret-token";

/// Request line, headers and body of each request.
type Seen = Arc<Mutex<Vec<(String, Headers, String)>>>;

struct Service {
    port: u16,
    seen: Seen,
}

impl Service {
    /// A server that answers every request with `respond`.
    async fn start<R: IntoResponse>(
        respond: impl Fn(&Headers) -> R + Clone + Send + Sync + 'static,
    ) -> Self {
        let seen = Seen::default();
        let record = Arc::clone(&seen);
        let answer = move |method: Method, uri: Uri, headers: Headers, body: Bytes| {
            let response: Response = respond(&headers).into_response();
            record.lock().unwrap().push((
                format!("{method} {uri}"),
                headers,
                String::from_utf8_lossy(&body).into(),
            ));
            async move { response }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(
            async move { axum::serve(listener, Router::new().fallback(any(answer))).await },
        );
        Self { port, seen }
    }

    fn tool(&self, method: Method, path: &str, effect: Effect) -> HttpToolDefinition {
        let mut token = HeaderValue::from_str(&format!("Bearer {SECRET}")).unwrap();
        token.set_sensitive(true);
        HttpToolDefinition {
            spec: ToolSpec {
                name: "t".into(),
                description: String::new(),
                parameters: json!({"type": "object"}),
                title: None,
                effect,
                is_inline: false,
            },
            method,
            url: UrlTemplate::parse(&format!("http://127.0.0.1:{}{path}", self.port)).unwrap(),
            headers: HeaderMap::from_iter([(
                HeaderName::from_static("x-plain"),
                HeaderValue::from_static("p"),
            )]),
            secrets: HeaderMap::from_iter([(reqwest::header::AUTHORIZATION, token)]),
            signing: None,
            probe: None,
            idempotency_header: HeaderName::from_static("idempotency-key"),
            timeout: Duration::from_secs(30),
            max_response_bytes: 1000,
        }
    }

    async fn get(&self) -> Result<Value, ToolError> {
        call(self.tool(Method::GET, "/", Effect::Read), "{}").await
    }
}

async fn call(definition: HttpToolDefinition, input: &str) -> Result<Value, ToolError> {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let mut policy = EgressPolicy::default();
    policy.allow("127.0.0.1").unwrap();
    let tool = HttpTool::new(definition, Egress::new(policy).unwrap());
    let output = tool.run(context(), Json::parse(input).unwrap()).await?;
    Ok(output.to_value())
}

#[tokio::test]
async fn inputs_go_into_the_url_and_the_rest_into_the_body() {
    let service = Service::start(|_: &Headers| "").await;
    let post = service.tool(Method::POST, "/users/{id}?q={query}&n={n}", Effect::Once);
    let input = r#"{"id":9007199254740993,"query":"a&b","n":null,"amount":12345678901234567890.10,"tags":["x"]}"#;
    call(post, input).await.unwrap();
    let seen = service.seen.lock().unwrap();
    let (line, headers, body) = &seen[0];
    assert_eq!(line, "POST /users/9007199254740993?q=a%26b");
    assert_eq!(
        body, r#"{"amount":12345678901234567890.10,"tags":["x"]}"#,
        "numbers keep their spelling"
    );
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["idempotency-key"], "c/m/exec_0123456789ab");
    assert_eq!(
        headers["authorization"],
        format!("Bearer {SECRET}").as_str()
    );
    assert_eq!(headers["x-plain"], "p");
    assert_eq!(headers["everturn-tool-call-id"], "call_1");
    assert_eq!(headers["everturn-depth"], "0");
    assert!(!headers.contains_key("everturn-tenant-id"));
}

#[tokio::test]
async fn a_get_sends_no_key_and_no_body() {
    let service = Service::start(|_: &Headers| StatusCode::NO_CONTENT).await;
    let get = service.tool(Method::GET, "/{ok}", Effect::Read);
    assert_eq!(
        call(get.clone(), r#"{"ok":true}"#).await.unwrap(),
        json!({"status": 204})
    );
    assert_eq!(service.seen.lock().unwrap()[0].0, "GET /true");
    assert!(
        !service.seen.lock().unwrap()[0]
            .1
            .contains_key("idempotency-key")
    );
    for (bad, expected) in [
        (r#"{"ok":"x","more":1}"#, "no argument `more`"),
        (r#"{"ok":{}}"#, "must be a string"),
        (r#"{"ok":".."}"#, "part of the address"),
        ("{}", "`ok` is missing"),
    ] {
        let error = call(get.clone(), bad).await.unwrap_err();
        assert!(
            matches!(&error, ToolError::Failed(message) if message.contains(expected)),
            "{bad}: {error}"
        );
    }
    assert_eq!(
        service.seen.lock().unwrap().len(),
        1,
        "nothing is sent of a wrong call"
    );
}

#[tokio::test]
async fn a_probe_sends_the_key_of_the_call_that_it_asks_about() {
    let service = Service::start(|_: &Headers| "").await;
    let mut policy = EgressPolicy::default();
    policy.allow("127.0.0.1").unwrap();
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let tool = service.tool(Method::GET, "/", Effect::Read);
    let tool = HttpTool::new(tool, Egress::new(policy).unwrap());
    let probe = ToolContext {
        is_probe: true,
        ..context()
    };
    let key = probe.idempotency_key.clone();
    tool.run(probe, Json::parse("{}").unwrap()).await.unwrap();
    let seen = service.seen.lock().unwrap();
    assert_eq!(seen[0].1["idempotency-key"], key.as_str());
}

#[tokio::test]
async fn json_stays_json_text_text_and_the_rest_is_base64() {
    let json = Service::start(|_: &Headers| {
        (
            [("content-type", "application/problem+json")],
            "{\"n\":9007199254740993}\n",
        )
    });
    assert_eq!(
        json.await.get().await.unwrap(),
        json!({"status": 200, "body": {"n": 9_007_199_254_740_993_u64}})
    );
    let text = Service::start(|_: &Headers| "grün")
        .await
        .get()
        .await
        .unwrap();
    assert_eq!(
        text,
        json!({"status": 200, "content_type": "text/plain; charset=utf-8", "body": "grün"})
    );
    for bytes in [&b"\xff\xfe"[..], b"a\0b", b"{broken \xff"] {
        let answer =
            Service::start(move |_: &Headers| ([("content-type", "application/json")], bytes));
        let result = answer.await.get().await.unwrap();
        assert_eq!(result["body"]["encoding"], "base64", "{result}");
        assert_eq!(result["body"]["type"], "application/json", "{result}");
    }
}

#[tokio::test]
async fn too_long_an_answer_is_an_error() {
    let service = Service::start(|_: &Headers| "x".repeat(1001)).await;
    let error = service.get().await.unwrap_err();
    assert!(
        matches!(&error, ToolError::Failed(message) if message.contains("more than 1000 bytes")),
        "{error}"
    );
}

#[tokio::test]
async fn a_status_says_whether_another_try_may_help() {
    let answer = |status: u16| async move {
        let refuse = move |_: &Headers| {
            (
                StatusCode::from_u16(status).unwrap(),
                [("retry-after", "7")],
                format!("why{}", "!".repeat(5000)),
            )
        };
        Service::start(refuse).await.get().await.unwrap_err()
    };
    for status in [400, 401, 404, 409, 422] {
        let error = answer(status).await;
        assert!(matches!(error, ToolError::Failed(_)), "{status}: {error:?}");
        assert!(
            error
                .to_string()
                .starts_with(&format!("The service answered {status}")),
            "{error}"
        );
        assert!(
            error.to_string().contains(": why!") && error.to_string().len() < 2100,
            "{error}"
        );
    }
    for status in [429, 500, 503] {
        let ToolError::Unavailable { retry_after, .. } = answer(status).await else {
            panic!("{status}")
        };
        assert_eq!(retry_after, Some(Duration::from_secs(7)), "{status}");
    }
    for status in [502, 504] {
        assert!(
            matches!(answer(status).await, ToolError::Interrupted(_)),
            "{status}: the service behind it may have done it"
        );
    }
    let redirect = Service::start(|_: &Headers| StatusCode::FOUND)
        .await
        .get()
        .await
        .unwrap_err();
    assert!(
        matches!(redirect, ToolError::Failed(_)),
        "a redirect to nowhere: {redirect:?}"
    );
}

#[tokio::test]
async fn a_secret_that_is_repeated_is_cut_out() {
    let echo = |headers: &Headers| {
        format!(
            "you sent {:?}, and again {:?}",
            headers["authorization"], headers["authorization"]
        )
    };
    let service = Service::start(echo).await;
    let result = service.get().await.unwrap().to_string();
    assert!(
        !result.contains(SECRET) && result.contains("***"),
        "{result}"
    );
    let refused =
        Service::start(move |headers: &Headers| (StatusCode::UNAUTHORIZED, echo(headers))).await;
    let error = refused.get().await.unwrap_err().to_string();
    assert!(!error.contains(SECRET) && error.contains("***"), "{error}");
    let definition = service.tool(Method::GET, "/", Effect::Read);
    assert!(
        !format!("{definition:?}").contains(SECRET),
        "{definition:?}"
    );
}

#[tokio::test]
async fn what_was_not_sent_and_what_was_not_answered_are_told_apart() {
    let service = Service::start(|_: &Headers| "").await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nowhere = Service {
        port: closed.local_addr().unwrap().port(),
        seen: Seen::default(),
    };
    let silent = nowhere.tool(Method::POST, "/", Effect::Once);
    let silent = HttpToolDefinition {
        timeout: Duration::from_millis(200),
        ..silent
    };
    assert!(
        matches!(call(silent, "{}").await, Err(ToolError::Interrupted(_))),
        "it accepts and says nothing"
    );
    drop(closed);
    assert!(matches!(
        nowhere.get().await,
        Err(ToolError::Unavailable { .. })
    ));
    let refused = HttpToolDefinition {
        url: UrlTemplate::parse("http://169.254.169.254/latest").unwrap(),
        ..service.tool(Method::GET, "/", Effect::Read)
    };
    let error = call(refused, "{}").await.unwrap_err();
    assert!(
        matches!(&error, ToolError::Failed(message) if message.contains("is refused")),
        "{error}"
    );
}
