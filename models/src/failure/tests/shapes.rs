//! The provider's words, in errors of any shape.

use super::*;

/// A body, and the end of the message.
const SHAPES: &[(&str, &str)] = &[
    (r#"{"error": {"message": "Some words."}}"#, ": Some words."),
    (r#"{"error": "Some words."}"#, ": Some words."),
    (
        r#"{"object": "error", "message": "Some words."}"#,
        ": Some words.",
    ),
    (r#"{"detail": "Some words."}"#, ": Some words."),
    (
        r#"{"detail": [{"type": "missing", "loc": ["body", "messages", 0, "content"], "msg": "Field required", "input": {"secret": "x"}}]}"#,
        ": body.messages.0.content: Field required",
    ),
    (r#"{"message": "Some words."}"#, ": Some words."),
    (
        r#"{"Message": "Some words.", "__type": "x#ValidationException"}"#,
        ": Some words.",
    ),
    (
        r#"{"code": 20015, "error": "Some words.", "data": null}"#,
        ": Some words.",
    ),
    (
        r#"{"error_code": "BAD_REQUEST", "message": "Some words."}"#,
        ": Some words.",
    ),
    (
        r#"[{"error": {"message": "Some words."}}]"#,
        ": Some words.",
    ),
    (
        r#"{"errors": ["Some words.", "More."]}"#,
        ": Some words.: More.",
    ),
    (
        r#"{"errors": [{"message": "Some words."}]}"#,
        ": Some words.",
    ),
    (r#"{"errors": {"model": ["Some words."]}}"#, ": Some words."),
    (
        r#"{"error": {"message": "{\"error\": {\"message\": \"Inner words.\", \"code\": 400}}"}}"#,
        ": Inner words.",
    ),
    (
        r#"{"error": {"message": "Provider returned error", "metadata": {"raw": "{\"error\": {\"message\": \"Inner words.\", \"code\": 400}}", "provider_name": "Nvidia"}}}"#,
        ": Provider returned error (Nvidia): Inner words.",
    ),
    (
        r#"{"error": {"message": "Provider returned error", "metadata": {"raw": "plain words"}}}"#,
        ": Provider returned error: plain words",
    ),
    (
        r#"{"error": {"message": "Provider returned error", "metadata": {"raw": {"message": "Some words."}}}}"#,
        ": Provider returned error: Some words.",
    ),
    (
        r#"{"error": {"message": "litellm.BadRequestError: BedrockException - {\"message\":\"Inner words.\"}"}}"#,
        ": litellm.BadRequestError: BedrockException - {\"message\":\"Inner words.\"}",
    ),
    (
        r#"{"type": "about:blank", "title": "Bad", "detail": "Some words."}"#,
        ": Bad: Some words.",
    ),
    (r#"{"error": {"code": "some_code"}}"#, ": somecode"),
    (
        r#"{"unknown": "Some words."}"#,
        ": {\"unknown\":\"Some words.\"}",
    ),
    (r#""Some words.""#, ": Some words."),
    ("Some words.\n", ": Some words."),
    (
        "event: error\ndata: {\"error\": {\"message\": \"Some words.\"}}\n\n",
        ": Some words.",
    ),
    (
        "{\"error\": {\"message\": \"Some wor",
        ": {\"error\": {\"message\": \"Some wor",
    ),
    (
        "<html><title>400 Bad Request</title></html>",
        ": 400 Bad Request",
    ),
    (
        r#"{"error": {"message": "<html><title>No</title></html>"}}"#,
        ": No",
    ),
    (r#"{"error": {"message": "a\u0000b\nc\u202e"}}"#, ": a b c"),
];

#[test]
fn the_words_of_every_shape_are_shown() {
    for (body, words) in SHAPES {
        let error = status(400, body);
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
