//! Answers whose status decides, and the remedies in the messages.

use super::*;

#[test]
fn a_status_decides_when_the_words_do_not() {
    for (at, expected) in [
        (400, FailureCode::LlmBadRequest),
        (401, FailureCode::LlmUnauthorized),
        (402, FailureCode::LlmQuotaExceeded),
        (403, FailureCode::LlmUnauthorized),
        (404, FailureCode::LlmNotFound),
        (405, FailureCode::LlmBadRequest),
        (408, FailureCode::LlmUnavailable),
        (409, FailureCode::LlmUnavailable),
        (410, FailureCode::LlmNotFound),
        (413, FailureCode::LlmBadRequest),
        (422, FailureCode::LlmBadRequest),
        (425, FailureCode::LlmUnavailable),
        (429, FailureCode::LlmRateLimited),
        (500, FailureCode::LlmUnavailable),
        (503, FailureCode::LlmUnavailable),
        (520, FailureCode::LlmUnavailable),
        (524, FailureCode::LlmUnavailable),
        (529, FailureCode::LlmOverloaded),
    ] {
        for (body, words) in [
            ("", ""),
            ("<html><title>A page</title></html>", "A page"),
            (r#"{"error": {"message": "Some words."}}"#, "Some words."),
            ("plain words", "plain words"),
        ] {
            let error = status(at, body);
            check(&error, &expected, words, body);
            assert!(error.message.contains(&at.to_string()), "{error}");
        }
    }
}

#[test]
fn an_address_without_a_version_is_named_unless_the_model_is_unknown() {
    let call = Call {
        advice: Some("Try another address."),
        ..CALL
    };
    let message = |body: &str| {
        let error = answer::from_status(call, StatusCode::NOT_FOUND, body, &HeaderMap::new());
        assert_eq!(error.code, FailureCode::LlmNotFound);
        error.message
    };
    for body in ["", "404 page not found", r#"{"detail": "Not Found"}"#] {
        let message = message(body);
        assert!(message.contains(" Try another address."), "{message}");
    }
    let unknown = r#"{"error": {"message": "The model `x` does not exist."}}"#;
    assert!(!message(unknown).contains("Try another"));
}

#[test]
fn a_server_without_stream_options_is_helped() {
    let body =
        r#"{"error": {"message": "Extra inputs are not permitted, field: 'stream_options'"}}"#;
    let message = status(400, body).message;
    let remedy = "set `stream_options = false` in [providers.p.profile]. The provider says: Extra";
    assert!(message.contains(remedy), "{message}");
}

#[test]
fn messages_name_the_remedy() {
    for (at, body, words) in [
        (307, "", "`base_url`"),
        (
            308,
            "<html><title>308 Permanent Redirect</title></html>",
            "`base_url`",
        ),
        (
            413,
            "<html><head><title>413 Request Entity Too Large</title></head></html>",
            "body is too large (413)",
        ),
        (
            403,
            "<!DOCTYPE html><html><title>Attention Required! | Cloudflare</title></html>",
            "proxies and firewalls",
        ),
        (
            403,
            "<title>Attention Required! | Cloudflare</title>",
            "Attention Required! | Cloudflare",
        ),
        (
            403,
            r#"{"error": {"message": "You have insufficient permissions for this operation."}}"#,
            "insufficient perm",
        ),
        (
            404,
            r#"{"error": {"message": "No endpoints found that support tool use.", "code": 404}}"#,
            "support tool use",
        ),
        (
            404,
            r#"{"error": {"message": "The model `x` does not exist."}}"#,
            "check `model` of the agent",
        ),
        (
            502,
            "<html><body>502 Bad Gateway</body></html>",
            "502 Bad Gateway",
        ),
    ] {
        assert!(
            status(at, body).message.contains(words),
            "{at}: {}",
            status(at, body)
        );
    }
    let refused = status(
        401,
        r#"{"error": {"message": "Incorrect API key provided: sk-ab***yz."}}"#,
    );
    assert!(!refused.message.contains("yz"), "{refused}");
}
