//! What can go wrong with a call, and what is to be done about it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chrono::Utc;
use everturn_proto::words::FailureCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{KEY, Script, Server, ask, client, hear, request, user};
use crate::{
    error::ModelError,
    port::{ModelReply, ModelRequest},
    provider::ProviderKind,
};

async fn fail(script: Script) -> ModelError {
    let (server, (_, reply)) = ask(ProviderKind::OpenAi, script).await;
    assert_eq!(server.seen().len(), 1, "nobody but the engine retries");
    let error = reply.unwrap_err();
    assert!(!error.message.contains(KEY), "{}", error.message);
    assert!(error.message.len() < 1200);
    error
}

fn body(message: &str, error_code: &str) -> Value {
    json!({"error": {"message": message, "type": "some_error", "code": error_code}})
}

#[tokio::test]
async fn the_status_is_found() {
    for (status, expected, is_retryable) in [
        (400, FailureCode::LlmBadRequest, false),
        (401, FailureCode::LlmUnauthorized, false),
        (403, FailureCode::LlmUnauthorized, false),
        (404, FailureCode::LlmNotFound, false),
        (408, FailureCode::LlmUnavailable, true),
        (413, FailureCode::LlmBadRequest, false),
        (422, FailureCode::LlmBadRequest, false),
        (429, FailureCode::LlmRateLimited, true),
        (500, FailureCode::LlmUnavailable, true),
        (502, FailureCode::LlmUnavailable, true),
        (503, FailureCode::LlmUnavailable, true),
        (529, FailureCode::LlmOverloaded, true),
        (402, FailureCode::LlmQuotaExceeded, false),
        (307, FailureCode::LlmBadRequest, false),
    ] {
        for text in [
            body("Why.", "x").to_string(),
            "<html>no JSON</html>".into(),
            String::new(),
        ] {
            let error = fail(Script::status(status, text).header("location", "/elsewhere")).await;
            assert_eq!(
                (error.code.clone(), error.is_retryable()),
                (expected.clone(), is_retryable),
                "{status}"
            );
            assert!(error.message.contains('p'), "names the provider");
        }
    }
}

#[tokio::test]
async fn a_refused_key_shows_neither_body_nor_key() {
    for status in [401, 403] {
        let error = fail(Script::status(
            status,
            body("Incorrect API key provided: sk-secr***6789.", "x"),
        ))
        .await;
        assert_eq!(
            error.message,
            format!(
                "Provider `p` refused the key ({status}): check the environment variable named by `api_key_env` of \
                 [providers.p], and that the key may use model `model-1`."
            )
        );
    }
    // Nor does any other error, should a provider repeat the key in it.
    let error = fail(Script::status(
        400,
        body(&format!("Bad header: {KEY}"), "x"),
    ))
    .await;
    assert_eq!(
        error.message,
        "Provider `p` refused the request (400): Bad header: ***"
    );
    // A message is shortened after 500 characters, which may be in the middle of the key.
    for shown in [10, 15] {
        let long = format!("{}{KEY} and more", "x".repeat(500 - shown));
        let error = fail(Script::status(400, body(&long, "x"))).await;
        assert!(error.message.ends_with("x***"), "{}", error.message);
    }
}

#[tokio::test]
async fn retry_after_is_honoured_within_bounds() {
    let date = |seconds: i64| {
        (Utc::now() + chrono::Duration::seconds(seconds))
            .to_rfc2822()
            .replace("+0000", "GMT")
    };
    // Made anew for each call, because a date is a number of seconds from now.
    let cases = || {
        [
            ("retry-after", "7".to_owned(), 7),
            ("retry-after", "0.5".to_owned(), 0),
            ("retry-after-ms", "2500".to_owned(), 2),
            ("retry-after", "86400".to_owned(), 600),
            ("retry-after", "1e300".to_owned(), 600),
            ("retry-after", date(90), 89),
            ("retry-after", date(-90), 0),
            ("retry-after", date(100_000), 600),
        ]
    };
    for status in [429, 503] {
        for case in 0..cases().len() {
            let (name, value, seconds) = &cases()[case];
            let wait = fail(Script::status(status, "{}").header(name, value))
                .await
                .retry_after
                .unwrap();
            assert!(
                wait.as_secs().abs_diff(*seconds) <= 1,
                "{name}: {value} gave {wait:?}"
            );
        }
    }
    for nonsense in ["soon", "-5", "NaN", ""] {
        assert_eq!(
            fail(Script::status(429, "{}").header("retry-after", nonsense))
                .await
                .retry_after,
            None,
            "{nonsense}"
        );
    }
}

#[tokio::test]
async fn a_context_that_is_too_long_is_told_from_other_mistakes() {
    let by_code = body("Please reduce your prompt.", "context_length_exceeded");
    let by_words = json!({"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400});
    for (status, text) in [
        (400, by_code),
        (400, by_words),
        (413, body("Prompt is too long", "")),
    ] {
        let error = fail(Script::status(status, text)).await;
        assert_eq!(error.code, FailureCode::LlmContextTooLong);
        assert!(error.message.contains("context_window"));
    }
    let long = fail(Script::status(400, body(&"é".repeat(2000), "x"))).await;
    assert_eq!(long.message.matches('é').count(), 500);
}

fn hello() -> String {
    json!({"choices": [{"index": 0, "delta": {"content": "Hello"}}]}).to_string()
}

#[tokio::test]
async fn a_stream_without_an_end_was_cut() {
    let half = r#"data: {"choices": [{"index": 0, "del"#;
    let character = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"x\"}}]}\n\n";
    for script in [
        Script::sse([hello()]),
        Script::sse([hello()]).then(half),
        Script::sse([hello()]).then(character).then_abort(),
        Script::sse::<String>([]),
        Script::status(200, r#"{"choices": []}"#),
    ] {
        let error = fail(script).await;
        assert_eq!(
            (error.code.clone(), error.is_retryable()),
            (FailureCode::LlmStreamCut, true),
            "{}",
            error.message
        );
    }
}

#[tokio::test]
async fn a_page_in_place_of_a_stream_is_a_wrong_address() {
    let error = fail(Script::status(200, "<html>a portal</html>")).await;
    assert_eq!(error.code, FailureCode::LlmBadRequest);
    assert!(error.message.contains("a portal"), "{error}");
    assert!(error.message.contains("base_url"), "{error}");
}

#[tokio::test]
async fn the_first_error_inside_a_stream_is_the_error() {
    let error = |kind: &str, error_code: Value| json!({"error": {"message": "Why.", "type": kind, "code": error_code}});
    for (first, expected) in [
        (
            error("server_error", Value::Null),
            FailureCode::LlmUnavailable,
        ),
        (
            error("rate_limit_error", "rate_limit_exceeded".into()),
            FailureCode::LlmRateLimited,
        ),
        (
            error("tokens", "rate_limit_exceeded".into()),
            FailureCode::LlmRateLimited,
        ),
        (
            error("invalid_request_error", "context_length_exceeded".into()),
            FailureCode::LlmContextTooLong,
        ),
        (
            error("invalid_request_error", Value::Null),
            FailureCode::LlmBadRequest,
        ),
        (
            error("invalid_request_error", "invalid_api_key".into()),
            FailureCode::LlmUnauthorized,
        ),
        (error("", json!(429)), FailureCode::LlmRateLimited),
        (error("", "502".into()), FailureCode::LlmUnavailable),
        (
            error("", "model_not_found".into()),
            FailureCode::LlmNotFound,
        ),
        (json!({"error": "just words"}), FailureCode::LlmUnavailable),
    ] {
        let second = error("invalid_request_error", "invalid_api_key".into()).to_string();
        let events = [hello(), first.to_string(), second, "[DONE]".to_owned()];
        assert_eq!(fail(Script::sse(events)).await.code, expected, "{first}");
    }
}

#[tokio::test]
async fn an_account_without_quota_is_not_asked_again() {
    for word in ["insufficient_quota", "billing_hard_limit_reached"] {
        let refused = json!({"error": {"message": "You exceeded your current quota.", "type": word, "code": word}});
        for script in [
            Script::status(429, refused.to_string()),
            Script::sse([hello(), refused.to_string(), "[DONE]".to_owned()]),
        ] {
            let error = fail(script).await;
            assert_eq!(
                (error.code.clone(), error.is_retryable()),
                (FailureCode::LlmQuotaExceeded, false)
            );
            assert!(
                error.message.contains("exceeded your current quota"),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_stream_with_an_event_that_is_no_json_was_cut() {
    let error = fail(Script::sse([hello(), "{nonsense}".into()])).await;
    assert_eq!(error.code, FailureCode::LlmStreamCut);
}

#[tokio::test]
async fn a_silent_model_has_timed_out() {
    let pause = Duration::from_hours(2);
    let mut urls = Vec::new();
    for script in [
        Script::sse([hello()]).then_pause(pause),
        Script::sse::<String>([]).then_pause(pause),
    ] {
        urls.push(Server::start([script]).await.base_url());
    }
    // The system takes the connection, and nobody answers the request.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    urls.push(format!("http://{}/v1/", mute.local_addr().unwrap()));
    for url in urls {
        let error = ask_with_patience(url, Duration::from_millis(300)).await;
        assert_eq!(error.as_ref().unwrap_err().code, FailureCode::LlmTimeout);
        let message = "The model was silent for longer than `llm_timeout` (300ms).";
        assert_eq!(error.unwrap_err().message, message);
    }
}

#[tokio::test]
async fn a_refusal_counts_although_its_body_does_not_end() {
    let script = Script::status(429, "{").then_pause(Duration::from_hours(2));
    let server = Server::start([script]).await;
    let reply = ask_with_patience(server.base_url(), Duration::from_millis(300)).await;
    assert_eq!(reply.unwrap_err().code, FailureCode::LlmRateLimited);
}

/// Calls a model that may be silent for so long.
async fn ask_with_patience(url: String, silence: Duration) -> Result<ModelReply, ModelError> {
    let request = ModelRequest {
        silence: Some(silence),
        ..request(vec![user("Hello")])
    };
    hear(&client(ProviderKind::OpenAi, url), request).await.1
}

#[tokio::test]
async fn comments_and_reasoning_are_signs_of_life() {
    let pause = Duration::from_millis(250);
    let thought = r#"{"choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}"#;
    let end = r#"{"choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":"stop"}]}"#;
    let script = Script::sse::<String>([])
        .then_pause(pause)
        .then(": ping\n\n")
        .then_pause(pause)
        .then(format!("data: {thought}\n\n"))
        .then_pause(pause)
        .then(": ping\n\n")
        .then_pause(pause)
        .then(format!("data: {end}\n\ndata: [DONE]\n\n"));
    let server = Server::start([script]).await;
    let reply = ask_with_patience(server.base_url(), pause * 3)
        .await
        .unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.reasoning.as_str()),
        ("Yes.", "Hm.")
    );
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for url in [
        format!("http://{address}/v1/"),
        "http://no-such-host.invalid/v1/".to_owned(),
    ] {
        let error = hear(
            &client(ProviderKind::OpenAi, url),
            request(vec![user("Hello")]),
        )
        .await
        .1
        .unwrap_err();
        assert_eq!(error.code, FailureCode::LlmUnavailable, "{}", error.message);
        assert!(error.is_refused, "nobody has the request: {error}");
    }
}

#[tokio::test]
async fn a_connection_closed_without_an_answer_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok(_closed_at_once) = listener.accept().await {
            accepted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let client = client(ProviderKind::OpenAi, format!("http://{address}/v1/"));
    let error = hear(&client, request(vec![user("Hello")]))
        .await
        .1
        .unwrap_err();
    assert_eq!(error.code, FailureCode::LlmUnavailable, "{}", error.message);
    assert!(!error.is_refused, "the request may be billed: {error}");
    let connections = connections.load(Ordering::SeqCst);
    assert_eq!(connections, 1, "no retries below either");
}

#[tokio::test]
async fn an_unknown_provider_is_not_found() {
    let server = Server::start([]).await;
    let mut request = request(vec![user("Hello")]);
    request.provider = "q".into();
    let error = hear(&client(ProviderKind::OpenAi, server.base_url()), request)
        .await
        .1
        .unwrap_err();
    assert_eq!(error.code, FailureCode::LlmNotFound);
    assert!(error.message.contains("[providers.q]"));
    assert!(server.seen().is_empty());
}
