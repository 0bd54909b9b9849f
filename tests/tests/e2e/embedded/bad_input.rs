//! Models and callers that misbehave. Each case ends with a clear error or a visible retry, and never hangs.

use std::time::Duration;

use everturn_proto::ids;
use everturn_tests::{
    events::{data, types},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

async fn run(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Stack, Vec<Value>) {
    run_agent(script, "tools = [\"calculate\", \"test_read\"]\n").await
}

async fn run_agent(
    script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    agent: &str,
) -> (Stack, Vec<Value>) {
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    let events = stack.ended(&conversation, 1).await;
    (stack, events)
}

#[tokio::test]
async fn permanent_errors_of_the_model_end_the_turn() {
    for (status, code, expected) in [
        (400, "invalid_request", "llm_bad_request"),
        (400, "context_length_exceeded", "llm_context_too_long"),
        (400, "content_policy_violation", "llm_content_policy"),
        (401, "invalid_api_key", "llm_unauthorized"),
        (404, "model_not_found", "llm_not_found"),
        (429, "insufficient_quota", "llm_quota_exceeded"),
    ] {
        let (stack, events) = run(move |_: &Request| Reply::error(status, code)).await;
        assert_eq!(types(&events), "user_message error", "{status}");
        assert_eq!(
            events[1]["event_data"]["code"], expected,
            "{status}: {events:#?}"
        );
        assert_eq!(
            stack.model.requests().len(),
            1,
            "{status}: a permanent error is not tried again"
        );
    }
}

#[tokio::test]
async fn passing_errors_of_the_model_are_tried_again() {
    let (stack, events) = run(|request: &Request| match request.number {
        1 => Reply::error(429, "rate_limited").header("retry-after", "1"),
        2 => Reply::error(503, "overloaded"),
        3 => Reply::text("Cut in the mid").cut(),
        _ => Reply::text("At last."),
    })
    .await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(events[1]["event_data"]["content"], "At last.");
    assert_eq!(stack.model.requests().len(), 4);
}

#[tokio::test]
async fn a_retry_is_visible_and_waits_as_asked() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::error(429, "rate_limited").header("retry-after", "7"),
        _ => Reply::text("Yes."),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    let workflow_id = ids::workflow_id(&conversation);
    let pending = wait::until("the retry is visible", || async {
        let described = stack.temporal.describe(&workflow_id).await;
        let pending = described["pendingActivities"].as_array()?.first()?.clone();
        pending["lastFailure"].is_object().then_some(pending)
    })
    .await;
    assert_eq!(
        pending["lastFailure"]["applicationFailureInfo"]["type"],
        "llm_rate_limited"
    );
    assert_eq!(
        pending["lastFailure"]["applicationFailureInfo"]["nextRetryDelay"],
        "7s"
    );
    stack.ended(&conversation, 1).await;
}

#[tokio::test]
async fn wrong_tool_calls_become_observations_the_model_can_read() {
    let (stack, events) = run(|request: &Request| match request.results_since_user() {
        0 => Reply::text("")
            .call("calculate", &json!({"wrong": 1}))
            .raw_call("calculate", r#"{"expression": "1 +"#)
            .call("no_such_tool", &json!({}))
            .call("test_read", &json!({"fail": "as told"}))
            .call("test_read", &json!({"panic": true}))
            .call("calculate", &json!({"expression": "1 +"})),
        _ => Reply::text("I see."),
    })
    .await;
    assert_eq!(types(&events).matches("observe").count(), 6, "{events:#?}");
    let observes: Vec<_> = events
        .iter()
        .filter(|event| event["event_type"] == "observe")
        .collect();
    assert!(
        observes
            .iter()
            .all(|observe| observe["event_data"]["is_error"] == true),
        "{observes:#?}"
    );
    let results = stack.model.requests()[1].body["messages"].to_string();
    for expected in ["no_such_tool", "as told", "expression"] {
        assert!(
            results.contains(expected),
            "{expected} is missing in {results}"
        );
    }
    assert_eq!(types(&events).split(' ').next_back(), Some("complete"));
}

#[tokio::test]
async fn a_tool_that_hangs_is_stopped() {
    let agent = "tools = [{ name = \"test_read\", timeout = \"1s\" }]\n";
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("").call("test_read", &json!({"sleep_ms": 600_000})),
        _ => Reply::text("It hangs."),
    };
    let (_stack, events) = run_agent(script, agent).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe assistant_message complete"
    );
    assert!(
        events[3]["event_data"]["result"]["error"]
            .as_str()
            .unwrap()
            .contains("1 s"),
        "{events:#?}"
    );
}

#[tokio::test]
async fn an_endless_tool_loop_ends_at_the_step_limit() {
    let agent = "tools = [\"calculate\"]\nmax_steps = 3\n";
    let script =
        |_: &Request| Reply::text("Again.").call("calculate", &json!({"expression": "1 + 1"}));
    let (stack, events) = run_agent(script, agent).await;
    let error = &events.last().unwrap()["event_data"];
    assert_eq!(error["code"], "step_limit");
    assert!(
        error["message"].as_str().unwrap().contains("max_steps"),
        "{error}"
    );
    // The last request asks for a summary.
    assert_eq!(stack.model.requests().len(), 4);
}

#[tokio::test]
async fn a_model_that_is_too_slow_twice_names_the_setting() {
    let agent = "tools = []\nllm_timeout = \"1s\"\n";
    let (stack, events) = run_agent(|_: &Request| Reply::text("Sti").held(), agent).await;
    assert_eq!(types(&events), "user_message assistant_message error");
    let kept = &events[1]["event_data"];
    assert_eq!(
        (&kept["content"], &kept["partial"]),
        (&"Sti".into(), &true.into())
    );
    let error = &events[2]["event_data"];
    assert_eq!(error["code"], "llm_timeout");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("silent for longer than `llm_timeout` (1s)"),
        "{message}"
    );
    assert_eq!(
        stack.model.requests().len(),
        2,
        "a long answer is not paid for again and again"
    );
}

#[tokio::test]
async fn a_model_that_writes_without_an_end_is_cut_off() {
    let agent = "tools = []\nllm_timeout = \"1s\"\nllm_total_timeout = \"2s\"\n";
    let slow = |_: &Request| {
        let pieces = vec!["more ".to_owned(); 1000];
        Reply::pieces(pieces, Duration::from_millis(100))
    };
    let (stack, events) = run_agent(slow, agent).await;
    assert_eq!(types(&events), "user_message assistant_message error");
    let kept = events[1]["event_data"]["content"].as_str().unwrap();
    assert!(kept.starts_with("more more "), "{kept}");
    let error = &events[2]["event_data"];
    assert_eq!(error["code"], "llm_timeout");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("within `llm_total_timeout` (2s)"),
        "{message}"
    );
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn odd_names_and_ids_of_calls_are_bounded() {
    let name = "x".repeat(10_000);
    let script = move |request: &Request| match request.results_since_user() {
        0 => Reply::text("")
            .call(&name, &json!({"nul": "a\u{0}b"}))
            .with_call_id(&"i".repeat(10_000)),
        _ => Reply::text("Odd."),
    };
    let (_stack, events) = run(script).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe assistant_message complete"
    );
    let act = &events[2]["event_data"];
    assert_eq!(act["tool_name"].as_str().unwrap().len(), 64);
    assert!(
        act["call_id"].as_str().unwrap().starts_with("call_"),
        "{act}"
    );
    assert_eq!(act["tool_input"]["nul"], "a\u{FFFD}b");
}

#[tokio::test]
async fn a_turn_after_a_failed_one_works() {
    let script = |request: &Request| match request.number {
        1 => Reply::error(400, "invalid_request"),
        _ => Reply::text("Fine now."),
    };
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("one").await;
    stack.ended(&conversation, 1).await;
    stack
        .client()
        .submit(&conversation, "two", None)
        .await
        .unwrap();
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        types(&events),
        "user_message error user_message assistant_message complete"
    );
}

#[tokio::test]
async fn callers_get_problems() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Never.")).await).await;
    let _gateway = stack.gateway().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let messages = format!("/conversations/{conversation}/messages");
    let too_long = "x".repeat(everturn_proto::limits::MAX_MESSAGE_BYTES + 1);
    for (path, body, expected) in [
        (messages.as_str(), json!({"content": ""}), 400),
        (&messages, json!({"content": "  \n"}), 400),
        (&messages, json!({"content": "a\u{0}b"}), 400),
        (&messages, json!({"content": too_long}), 413),
        (&messages, json!({}), 400),
        (
            "/conversations/unknown/messages",
            json!({"content": "hi"}),
            404,
        ),
        ("/conversations", json!({"agent": "nobody"}), 400),
    ] {
        let (status, problem) = stack.post(path, &body).await;
        assert_eq!(status, expected, "{path}: {problem}");
        assert!(
            problem["code"].is_string() && problem["detail"].is_string(),
            "{problem}"
        );
    }
    let url = format!("{}/api/v1/agent{messages}", stack.url());
    let request = reqwest::Client::new()
        .post(url)
        .header("content-type", "application/json")
        .body("{");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    assert!(
        stack.events(&conversation).await.is_empty(),
        "bad input changes nothing"
    );
}

#[tokio::test]
async fn a_reply_that_cannot_be_used_is_paid_for_twice_at_most() {
    let (stack, events) = run(|_: &Request| Reply::text("")).await;
    assert_eq!(types(&events), "user_message error");
    assert_eq!(events[1]["event_data"]["code"], "llm_empty_reply");
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn replies_that_are_cut_in_their_calls_are_paid_for_three_times_at_most() {
    let cut = |_: &Request| Reply::text("").call("test_read", &json!({})).at_limit();
    let (stack, events) = run(cut).await;
    let error = &events.last().unwrap()["event_data"];
    assert_eq!(error["code"], "llm_reply_cut", "{error:#}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("`max_output_tokens`")
    );
    assert_eq!(stack.model.requests().len(), 3);
    assert!(
        data(&events, "observe")
            .iter()
            .all(|it| it["is_error"] == true),
        "no cut call runs: {events:#?}"
    );
}
