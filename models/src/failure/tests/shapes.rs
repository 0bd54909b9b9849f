//! The provider's words, in errors of any shape.

use super::*;

#[test]
fn the_words_of_every_shape_are_shown() {
    let within = json!({"error": {"message": "Inner words.", "code": 400}}).to_string();
    for (body, words) in [
        (json!({"error": {"message": "Some words."}}).to_string(), ": Some words."),
        (json!({"error": "Some words."}).to_string(), ": Some words."),
        (json!({"object": "error", "message": "Some words."}).to_string(), ": Some words."),
        (json!({"detail": "Some words."}).to_string(), ": Some words."),
        (
            json!({"detail": [{"type": "missing", "loc": ["body", "messages", 0, "content"], "msg": "Field required",
                "input": {"secret": "x"}}]})
            .to_string(),
            ": body.messages.0.content: Field required",
        ),
        (json!({"message": "Some words."}).to_string(), ": Some words."),
        (json!({"Message": "Some words.", "__type": "x#ValidationException"}).to_string(), ": Some words."),
        (json!({"code": 20015, "error": "Some words.", "data": null}).to_string(), ": Some words."),
        (json!({"error_code": "BAD_REQUEST", "message": "Some words."}).to_string(), ": Some words."),
        (json!([{"error": {"message": "Some words."}}]).to_string(), ": Some words."),
        (json!({"errors": ["Some words.", "More."]}).to_string(), ": Some words.: More."),
        (json!({"errors": [{"message": "Some words."}]}).to_string(), ": Some words."),
        (json!({"errors": {"model": ["Some words."]}}).to_string(), ": Some words."),
        (json!({"error": {"message": within}}).to_string(), ": Inner words."),
        (
            json!({"error": {"message": "Provider returned error", "metadata": {"raw": within, "provider_name": "Nvidia"}}})
                .to_string(),
            ": Provider returned error (Nvidia): Inner words.",
        ),
        (
            json!({"error": {"message": "Provider returned error", "metadata": {"raw": "plain words"}}}).to_string(),
            ": Provider returned error: plain words",
        ),
        (
            json!({"error": {"message": "Provider returned error", "metadata": {"raw": {"message": "Some words."}}}})
                .to_string(),
            ": Provider returned error: Some words.",
        ),
        (
            json!({"error": {"message": "litellm.BadRequestError: BedrockException - {\"message\":\"Inner words.\"}"}})
                .to_string(),
            ": litellm.BadRequestError: BedrockException - {\"message\":\"Inner words.\"}",
        ),
        (json!({"type": "about:blank", "title": "Bad", "detail": "Some words."}).to_string(), ": Bad: Some words."),
        (json!({"error": {"code": "some_code"}}).to_string(), ": somecode"),
        (json!({"unknown": "Some words."}).to_string(), ": {\"unknown\":\"Some words.\"}"),
        (json!("Some words.").to_string(), ": Some words."),
        ("Some words.\n".to_owned(), ": Some words."),
        ("event: error\ndata: {\"error\": {\"message\": \"Some words.\"}}\n\n".to_owned(), ": Some words."),
        ("{\"error\": {\"message\": \"Some wor".to_owned(), ": {\"error\": {\"message\": \"Some wor"),
        ("<html><title>400 Bad Request</title></html>".to_owned(), ": 400 Bad Request"),
        (json!({"error": {"message": "<html><title>No</title></html>"}}).to_string(), ": No"),
        (json!({"error": {"message": "a\u{0}b\nc\u{202e}"}}).to_string(), ": a b c"),
    ] {
        let error = status(400, &body);
        let expected = format!("Provider `p` refused the request (400){words}");
        assert_eq!(error.message, expected, "{body}");
        assert_eq!(error.code, FailureCode::LlmBadRequest);
    }
    for body in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"error": null}"#,
        r#"{"error": {"message": ""}}"#,
    ] {
        assert_eq!(
            status(400, body).message,
            "Provider `p` refused the request (400).",
            "{body}"
        );
    }
}

#[test]
fn the_words_have_a_limit() {
    let error = status(
        400,
        &json!({"error": {"message": "é".repeat(2000), "detail": "x".repeat(2000)}}).to_string(),
    );
    assert_eq!(error.message.matches('é').count(), MAX_DETAIL_CHARS);
    let deep = (0..100).fold(json!("x"), |inner, _| json!({"error": inner}));
    assert_eq!(
        status(400, &deep.to_string()).code,
        FailureCode::LlmBadRequest
    );
}

#[test]
fn a_repeated_request_is_not_read() {
    let said = "prompt is too long";
    for body in [
        json!({"error": {"message": "No.", "request": {"message": said}}}),
        json!({"detail": [{"loc": ["body"], "msg": "No.", "input": said}]}),
        json!({"error": {"message": "No.", "metadata": {"flagged_input": said}}}),
    ] {
        assert_eq!(
            status(400, &body.to_string()).code,
            FailureCode::LlmBadRequest,
            "{body}"
        );
    }
    // A model's words in a failed call are about anything.
    let raw = format!("error parsing tool call: raw='{said}', err=invalid character");
    assert_eq!(
        status(500, &json!({"error": raw}).to_string()).code,
        FailureCode::LlmInvalidResponse
    );
}
