//! What can go wrong with a call.

use everturn_proto::words::FailureCode;

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
        (400, FailureCode::LlmBadRequest),
        (401, FailureCode::LlmUnauthorized),
        (404, FailureCode::LlmNotFound),
        (429, FailureCode::LlmRateLimited),
        (503, FailureCode::LlmUnavailable),
        (307, FailureCode::LlmBadRequest),
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
        ("server_error", FailureCode::LlmUnavailable),
        ("rate_limit_exceeded", FailureCode::LlmRateLimited),
        ("insufficient_quota", FailureCode::LlmQuotaExceeded),
        ("context_length_exceeded", FailureCode::LlmContextTooLong),
        ("invalid_prompt", FailureCode::LlmBadRequest),
        ("content_filter", FailureCode::LlmContentPolicy),
        ("server_overloaded", FailureCode::LlmOverloaded),
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
        assert_eq!(fail(false, script).await.code, FailureCode::LlmStreamCut);
    }
}

#[tokio::test]
async fn a_response_that_vanishes_while_it_is_read_is_a_cut_stream() {
    let begun = Script::named([created(), delta("one ")]);
    let asked = ask(true, [begun, Script::status(404, "{}")]).await;
    assert_eq!(asked.reply.unwrap_err().code, FailureCode::LlmStreamCut);
}

#[tokio::test]
async fn a_provider_that_stays_away_is_left_to_a_later_attempt() {
    let busy = || Script::status(503, "busy");
    let begun = Script::named([created(), delta("one ")]);
    let asked = ask(true, [begun, busy(), busy(), busy(), busy()]).await;
    let error = asked.reply.unwrap_err();
    assert_eq!(error.code, FailureCode::LlmUnavailable);
    assert!(error.is_retryable());
    assert_eq!(asked.seen.len(), 5);
}
