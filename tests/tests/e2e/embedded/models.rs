//! An agent with several models: a message or a conversation chooses one of them, and its turn has no other.

use std::time::Duration;

use everturn_client::GatewayClient;
use everturn_tests::{
    events::data,
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

use crate::embedded::{
    callers::ended,
    keys::{AUTH, create},
};

const MODELS: &str = "models = [\"second/other\", \"second/small\"]\n";
const PROVIDERS: &str = "[models.\"second/other\"]\ninput = 1.0\noutput = 10\n";

/// A model that says its name, and calls a tool where it is asked to.
async fn named(name: &'static str) -> Model {
    Model::start(
        move |request: &Request| match request.last("user").as_str() {
            "calculate" if request.results_since_user() == 0 => {
                Reply::text("").call("calculate", &json!({"expression": "1 + 1"}))
            }
            _ => Reply::text(name),
        },
    )
    .await
}

async fn stack(first: Model, second: &Model, keys: &str) -> Stack {
    let agent = format!("tools = [\"calculate\"]\n{MODELS}{keys}{PROVIDERS}");
    let stack = Stack::with_agent(first, &agent).await;
    stack.configure(&format!(
        "[providers.second]\nkind = \"openai\"\nbase_url = \"{}\"\n",
        second.base_url()
    ));
    stack
}

async fn send(stack: &Stack, conversation: &str, content: &str, model: Option<&str>) {
    let path = format!("/conversations/{conversation}/messages");
    let mut body = json!({"content": content, "create": {}});
    if let Some(model) = model {
        body["model"] = model.into();
    }
    let (status, answer) = stack.post(&path, &body).await;
    assert_eq!(status, 202, "{answer}");
}

/// Returns the answers of all turns, and the chosen models of their messages.
async fn answers(stack: &Stack, conversation: &str, turns: usize) -> Vec<(Value, Value)> {
    let events = stack.ended(conversation, turns).await;
    let said = data(&events, "assistant_message");
    let asked = data(&events, "user_message");
    let pairs = said.iter().zip(&asked);
    pairs
        .map(|(said, asked)| (said["content"].clone(), asked["model"].clone()))
        .collect()
}

fn said(answer: &str, model: Option<&str>) -> (Value, Value) {
    (answer.into(), model.into())
}

async fn change(stack: &Stack, conversation: &str, change: &Value) -> (u16, Value) {
    let url = format!("{}/api/v1/agent/conversations/{conversation}", stack.url());
    let answer = stack.http.patch(url).json(change).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn a_message_or_a_conversation_chooses_the_model_of_whole_turns() {
    let second = named("second").await;
    let stack = stack(named("first").await, &second, "").await;
    let _running = stack.start().await;
    let agents = stack.get("/agents").await;
    let allowed = json!(["scripted/scripted", "second/other", "second/small"]);
    assert_eq!(agents["agents"][0]["models"], allowed);

    // A message chooses, for each step of its turn.
    send(&stack, "chosen-models", "hello", None).await;
    stack.ended("chosen-models", 1).await;
    send(&stack, "chosen-models", "calculate", Some("second/other")).await;
    stack.ended("chosen-models", 2).await;
    assert_eq!(second.requests().len(), 2, "both steps");
    assert!(
        second
            .requests()
            .iter()
            .all(|it| it.body["model"] == "other")
    );

    // The conversation changes its model in the middle.
    let (status, changed) =
        change(&stack, "chosen-models", &json!({"model": "second/small"})).await;
    assert_eq!((status, &changed["model"]), (200, &json!("second/small")));
    send(&stack, "chosen-models", "and now?", None).await;
    stack.ended("chosen-models", 3).await;
    send(
        &stack,
        "chosen-models",
        "and this?",
        Some("scripted/scripted"),
    )
    .await;
    stack.ended("chosen-models", 4).await;
    let (_, changed) = change(&stack, "chosen-models", &json!({"model": ""})).await;
    assert_eq!(changed["model"], Value::Null);
    send(&stack, "chosen-models", "the end", None).await;
    let expected = [
        said("first", None),
        said("second", Some("second/other")),
        said("second", Some("second/small")),
        said("first", Some("scripted/scripted")),
        said("first", None),
    ];
    assert_eq!(answers(&stack, "chosen-models", 5).await, expected);

    // What answered is in the usage, with its own price.
    let usage = stack.get_api("/api/v1/usage").await;
    let of_model = |name: &str| {
        let days = usage["usage"].as_array().unwrap().iter();
        days.filter(|day| day["model"] == name)
            .map(|day| day["calls"].as_u64().unwrap())
            .sum::<u64>()
    };
    let calls = ["scripted/scripted", "second/other", "second/small"].map(of_model);
    assert_eq!(calls, [3, 2, 1], "{usage:#}");
}

#[tokio::test]
async fn a_model_that_the_agent_does_not_have_is_refused() {
    let second = named("second").await;
    let stack = stack(named("first").await, &second, "").await;
    let _running = stack.start().await;
    let refused = |(status, problem): (u16, Value)| {
        assert_eq!((status, &problem["code"]), (400, &json!("unknown_model")));
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("second/other"), "{detail}");
    };
    let other = json!({"content": "hello", "model": "second/unknown", "create": {}});
    refused(
        stack
            .post("/conversations/unknown-models/messages", &other)
            .await,
    );
    let url = format!("{}/api/v1/agent/conversations/unknown-models", stack.url());
    let shown = stack.http.get(url).send().await.unwrap();
    assert_eq!(shown.status(), 404, "no conversation was made");
    let new = json!({"id": "unknown-models", "model": "second/unknown"});
    refused(stack.post("/conversations", &new).await);
    let new = json!({"id": "unknown-models", "model": "second/other"});
    assert_eq!(stack.post("/conversations", &new).await.0, 201);
    let unknown = json!({"model": "second", "title": "Another"});
    refused(change(&stack, "unknown-models", &unknown).await);
    let shown = stack.get("/conversations/unknown-models").await;
    assert_eq!(
        [&shown["model"], &shown["title"]],
        [&json!("second/other"), &json!("")]
    );

    // A repeated message is one message with one model.
    let path = "/conversations/unknown-models/messages";
    let message = json!({"content": "hello", "message_id": "m", "model": "second/small"});
    assert_eq!(stack.post(path, &message).await.0, 202);
    assert_eq!(stack.post(path, &message).await.0, 202);
    let other = json!({"content": "hello", "message_id": "m", "model": "second/other"});
    let (status, problem) = stack.post(path, &other).await;
    assert_eq!(
        (status, &problem["code"]),
        (409, &json!("idempotency_conflict"))
    );
    let expected = [said("second", Some("second/small"))];
    assert_eq!(answers(&stack, "unknown-models", 1).await, expected);
}

#[tokio::test]
async fn the_fallback_follows_the_chosen_model() {
    let failing = Model::start(|request: &Request| {
        if request.body["model"] == "other" {
            Reply::error(401, "no such key")
        } else {
            Reply::text("small")
        }
    });
    let second = failing.await;
    let keys = "[agents.default.fallback]\nmodels = [\"second/other\", \"second/small\"]\n";
    let stack = stack(named("first").await, &second, keys).await;
    let _running = stack.start().await;
    send(&stack, "followed-models", "hello", Some("second/other")).await;
    let events = stack.ended("followed-models", 1).await;
    let fallback = data(&events, "model_fallback")[0];
    assert_eq!(
        [&fallback["from"], &fallback["to"]],
        ["second/other", "second/small"]
    );
    assert_eq!(
        stack.model.requests().len(),
        0,
        "the own model was not chosen"
    );
}

#[tokio::test]
async fn a_running_turn_keeps_its_model_and_shows_it() {
    let second = Model::start(|_| Reply::text("second to the end").held()).await;
    let stack = stack(named("first").await, &second, "").await;
    let _running = stack.start().await;
    send(&stack, "running-models", "hello", Some("second/other")).await;
    stack.saw("running-models", "user_message").await;
    let status = stack
        .get("/conversations/running-models/execution-status")
        .await;
    assert_eq!(status["model"], "second/other");
    // The choice of a message that waits is its own.
    send(&stack, "running-models", "and you?", None).await;
    second.release();
    let expected = [
        said("second to the end", Some("second/other")),
        said("first", None),
    ];
    assert_eq!(answers(&stack, "running-models", 2).await, expected);
    let status = stack
        .get("/conversations/running-models/execution-status")
        .await;
    assert_eq!(status["model"], Value::Null);
}

#[tokio::test]
async fn each_tenant_has_the_models_of_its_own_agents() {
    let second = named("second").await;
    let stack = stack(named("first").await, &second, "").await;
    stack.configure(&format!(
        "{AUTH}\n[agents.clerk]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\
         models = [\"second/secret\"]\ntenants = [\"acme\"]\n"
    ));
    let _running = stack.start().await;
    let acme = create(&stack, &["--tenant", "acme"]).await;
    let globex = create(&stack, &["--tenant", "globex"]).await;
    let client = |key: &str, model: &str| {
        let client = GatewayClient::with_token(&stack.url(), Some(key)).unwrap();
        client
            .retrying_every(Duration::from_millis(500))
            .choosing_model(Some(model.to_owned()))
    };
    let ours = client(&acme, "second/secret");
    ours.submit_first("tenants-models", Some("clerk"), "hello", None)
        .await
        .unwrap();
    let theirs = client(&globex, "second/secret");
    let refused = theirs
        .submit_first("tenants-models", None, "hello", None)
        .await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("unknown_model"), "{refused}");
    let theirs = client(&globex, "second/other");
    theirs
        .submit_first("tenants-models", None, "hello", None)
        .await
        .unwrap();
    for (key, model) in [(&acme, "second/secret"), (&globex, "second/other")] {
        let events = ended(&stack, key, "tenants-models").await;
        assert_eq!(data(&events, "user_message")[0]["model"], model);
        assert_eq!(data(&events, "assistant_message")[0]["content"], "second");
    }
}
