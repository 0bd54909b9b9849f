//! What can go wrong with a call.

use everturn_proto::words::failure as code;

use super::*;

async fn fail(background: bool, script: Script) -> ModelError {
    let asked = ask(background, [script]).await;
    let error = asked.reply.unwrap_err();
    assert!(!error.message.contains(KEY), "{}", error.message);
    error
}

fn failed(error: &Value) -> Script {
    let response = json!({"id": "resp_1", "status": "failed", "error": error});
    Script::named([
        created(),
        json!({"type": "response.failed", "response": response}),
    ])
}

#[tokio::test]
async fn the_status_is_found() {
    let body = json!({"error": {"message": format!("No, {KEY}."), "code": "x"}});
    for (status, expected) in [
        (400, code::LLM_BAD_REQUEST),
        (401, code::LLM_UNAUTHORIZED),
        (404, code::LLM_NOT_FOUND),
        (429, code::LLM_RATE_LIMITED),
        (503, code::LLM_UNAVAILABLE),
        (307, code::LLM_BAD_REQUEST),
    ] {
        for background in [true, false] {
            let script = Script::status(status, &body).header("location", "/elsewhere");
            assert_eq!(fail(background, script).await.code, expected, "{status}");
        }
    }
    let limited = Script::status(429, &body).header("retry-after", 7);
    let error = fail(true, limited).await;
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_response_says_why_it_failed() {
    for (error, expected) in [
        ("server_error", code::LLM_UNAVAILABLE),
        ("rate_limit_exceeded", code::LLM_RATE_LIMITED),
        ("insufficient_quota", code::LLM_QUOTA_EXCEEDED),
        ("context_length_exceeded", code::LLM_CONTEXT_TOO_LONG),
        ("invalid_prompt", code::LLM_BAD_REQUEST),
        ("content_filter", code::LLM_CONTENT_POLICY),
        ("server_overloaded", code::LLM_OVERLOADED),
    ] {
        let error = json!({"code": error, "message": format!("Why, {KEY}.")});
        let mut event = error.clone();
        event["type"] = json!("error");
        for (background, script) in [
            (true, failed(&error)),
            (false, failed(&error)),
            (false, Script::named([created(), event])),
        ] {
            assert_eq!(fail(background, script).await.code, expected, "{error}");
        }
    }
}

#[tokio::test]
async fn a_plain_stream_that_is_cut_is_lost() {
    let begun = || Script::named([created(), delta("one ")]);
    for script in [
        begun(),
        begun().then_abort(),
        begun().then("data: {\"type\":"),
        begun().then("data: {\"type\":\n\n"),
        begun().then("data: <html>\n\n"),
    ] {
        assert_eq!(fail(false, script).await.code, code::LLM_STREAM_CUT);
    }
}

#[tokio::test]
async fn a_response_that_vanishes_while_it_is_read_is_a_cut_stream() {
    let begun = Script::named([created(), delta("one ")]);
    let asked = ask(true, [begun, Script::status(404, "{}")]).await;
    assert_eq!(asked.reply.unwrap_err().code, code::LLM_STREAM_CUT);
}

#[tokio::test]
async fn a_provider_that_stays_away_is_left_to_a_later_attempt() {
    let busy = || Script::status(503, "busy");
    let begun = Script::named([created(), delta("one ")]);
    let asked = ask(true, [begun, busy(), busy(), busy(), busy()]).await;
    let error = asked.reply.unwrap_err();
    assert_eq!(error.code, code::LLM_UNAVAILABLE);
    assert!(error.is_retryable());
    assert_eq!(asked.seen.len(), 5);
}
