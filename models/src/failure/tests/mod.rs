//! Errors of providers, as statuses and within streams: the code, the words in the message, and the time to wait.

mod gateways;
mod messages;
mod overflow;
mod shapes;
mod statuses;
mod streams;
mod waits;

use std::time::Duration;

use everturn_proto::words::FailureCode;
use proptest::prelude::*;
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::{Value, json};

use super::{answer, own::Call, text::MAX_DETAIL_CHARS};
use crate::error::ModelError;

const CALL: Call<'_> = Call {
    provider: "p",
    model: "m",
    advice: None,
};

fn status(status: u16, body: &str) -> ModelError {
    let status = StatusCode::from_u16(status).unwrap();
    answer::from_status(CALL, status, body, &HeaderMap::new())
}

fn stream(frame: &Value) -> ModelError {
    assert!(super::is_error(frame), "{frame}");
    answer::from_body(CALL, frame)
}

/// Checks the code of an error, and that the message shows the words.
fn check(error: &ModelError, code: &FailureCode, words: &str, of: &str) {
    assert_eq!(&error.code, code, "{of}: {error}");
    assert!(error.message.contains(words), "{of}: {error}");
    assert!(!error.message.contains(char::is_control), "{error:?}");
}

/// Bodies of errors with the fields of real providers, and with random fields.
fn bodies() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 10] = [
        "insufficient_quota",
        "content_filter",
        "context_length_exceeded",
        "overloaded_error",
        "tokens",
        "429",
        "1e9s",
        "-3s",
        "{\"error\":{\"message\":\"try again in 9999999999999h\"}}",
        "<title>x",
    ];
    let leaf = prop_oneof![
        4 => prop::sample::select(&WORDS[..]).prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        let name = "error|message|type|code|status|details|retryDelay|retry_after|reason|violations|quotaId|innererror\
                    |metadata|raw|loc|msg";
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => prop::collection::hash_map(name, inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

proptest! {
    #[test]
    fn any_answer_of_a_provider_is_an_error_with_a_code(
        body in bodies(), text in "\\PC{0,2000}", status in 300_u16..600,
    ) {
        let status = StatusCode::from_u16(status).unwrap();
        let headers = HeaderMap::new();
        let errors = [
            answer::from_body(CALL, &body),
            answer::from_status(CALL, status, &body.to_string(), &headers),
            answer::from_status(CALL, status, &text, &headers),
            answer::not_a_stream(CALL, &text, false),
            answer::not_a_stream(CALL, &body.to_string(), true),
            super::content_policy("p", &text),
        ];
        for error in errors {
            prop_assert!(FailureCode::ALL.contains(&error.code), "{}", error.code);
            prop_assert!(error.message.chars().count() <= MAX_DETAIL_CHARS + 300, "{}", error.message);
            let wait = error.retry_after.unwrap_or_default();
            prop_assert!(wait <= Duration::from_mins(10), "{:?}", wait);
        }
        let _is_any = super::is_error(&body);
    }
}
