//! Limits of tenants and owners, against those who ask several gateways, or use what others are to have.

use everturn_tests::{
    model::{Model, Reply},
    stack::{Process, Stack},
    wait,
};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use crate::embedded::keys::{AUTH, create};

/// Two gateways with these limits.
async fn two_gateways(limits: &str) -> (Stack, [Process; 2]) {
    let model = Model::start(|_| Reply::text("Hi there.")).await;
    let stack = Stack::breakable(model).await.with_gateways(2);
    stack.configure(&format!("[limits]\n{limits}\n"));
    let (first, second) = tokio::join!(stack.gateway_on(0, &[]), stack.gateway_on(1, &[]));
    (stack, [first, second])
}

async fn code(refused: Response) -> Value {
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"));
    let problem: Value = refused.json().await.unwrap();
    problem["code"].clone()
}

/// Waits until a gateway opens the stream.
async fn comes_free(open: impl AsyncFn() -> Response) -> Response {
    wait::until("the place of a stream comes free", || async {
        let answer = open().await;
        answer.status().is_success().then_some(answer)
    })
    .await
}

#[tokio::test]
async fn a_tenant_has_its_streams_once_and_not_at_each_gateway() {
    let (stack, [first, _second]) = two_gateways("open_streams = 2").await;
    let client = Client::new();
    let open = async |gateway: usize| {
        let url = stack.gateway_url(gateway);
        let path = "/api/v1/agent/conversation-list/stream";
        client.get(format!("{url}{path}")).send().await.unwrap()
    };
    let (one, _two) = (open(0).await, open(0).await);
    for gateway in [0, 1] {
        assert_eq!(
            code(open(gateway).await).await,
            "too_many_streams_of_tenant"
        );
    }
    // The other gateway is told of the one that closes.
    drop(one);
    let _three = comes_free(async || open(1).await).await;
    assert_eq!(code(open(0).await).await, "too_many_streams_of_tenant");
    // What a gateway had open that is gone counts no more after a while.
    first.kill().await;
    comes_free(async || open(1).await).await;
}

#[tokio::test]
async fn a_tenant_has_its_requests_once_and_not_at_each_gateway() {
    const BURST: usize = 50;
    let limits = format!("requests_per_second = 1\nrequest_burst = {BURST}");
    let (stack, _gateways) = two_gateways(&limits).await;
    let client = Client::new();
    let get = async |gateway: usize| {
        let url = stack.gateway_url(gateway);
        let path = "/api/v1/agent/conversations";
        client.get(format!("{url}{path}")).send().await.unwrap()
    };
    while get(0).await.status().is_success() {}
    // A gateway learns what the others have let through a moment after a request of its own.
    let mut answered = 0;
    wait::until("the other gateway refuses, too", || {
        let answer = get(1);
        answered += 1;
        async { (!answer.await.status().is_success()).then_some(()) }
    })
    .await;
    assert!(answered < BURST, "{answered} more were answered");
}

#[tokio::test]
async fn an_owner_leaves_the_tenant_what_is_the_others() {
    let model = Model::start(|_| Reply::text("Hi there.").held()).await;
    let stack = Stack::with_agent(
        model,
        "\n[limits.owner]\nrequests_per_second = 1\nrequest_burst = 20\nopen_streams = 1\nconcurrent_turns = 1\n",
    )
    .await;
    stack.configure(AUTH);
    let _running = stack.start().await;
    let client = Client::new();
    let mut keys = Vec::new();
    for owner in ["ann", "bob"] {
        keys.push(create(&stack, &["--tenant", "acme", "--owner", owner]).await);
    }
    let ask = async |key: &str, method: &str, path: &str, body: &Value| {
        let url = format!("{}/api/v1/agent{path}", stack.url());
        let request = client
            .request(method.parse().unwrap(), url)
            .bearer_auth(key);
        request.json(body).send().await.unwrap()
    };
    let send = async |key: &str, id: &str| {
        let created = ask(key, "POST", "/conversations", &json!({"id": id})).await;
        assert!(created.status().is_success());
        let path = format!("/conversations/{id}/messages");
        ask(key, "POST", &path, &json!({"content": "hello"})).await
    };
    assert_eq!(send(&keys[0], "ann-1").await.status(), StatusCode::ACCEPTED);
    assert_eq!(code(send(&keys[0], "ann-2").await).await, "too_many_turns");
    assert_eq!(send(&keys[1], "bob-1").await.status(), StatusCode::ACCEPTED);

    let open = async |key: &str| ask(key, "GET", "/conversation-list/stream", &Value::Null).await;
    let _open = open(&keys[0]).await;
    assert_eq!(
        code(open(&keys[0]).await).await,
        "too_many_streams_of_owner"
    );
    assert_eq!(open(&keys[1]).await.status(), StatusCode::OK);

    let refused = loop {
        let answer = ask(&keys[0], "GET", "/conversations", &Value::Null).await;
        if !answer.status().is_success() {
            break answer;
        }
    };
    assert_eq!(code(refused).await, "rate_limited");
    let others = ask(&keys[1], "GET", "/conversations", &Value::Null).await;
    assert_eq!(others.status(), StatusCode::OK);
    stack.model.release();
}
