//! What a provider is told of the caller of a turn: the fields and headers of its table, and only of its own conversation.

use everturn_client::GatewayClient;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

use crate::embedded::{
    callers::ended,
    keys::{AUTH, create},
};

const CALLER: &str = "[providers.told]\nkind = \"openai\"\nbase_url = \"URL\"\n\
    [providers.told.caller]\nuser = \"{owner_hash}\"\n\
    metadata = { tenant = \"{tenant_id}\", plan = \"{metadata.plan}\" }\ntags = [\"plan:{metadata.plan}\"]\n\
    headers = { X-Conversation = \"{conversation_id}\", X-Plan = \"{metadata.plan}\" }\n";

async fn stack(told: &Model) -> Stack {
    let model = Model::start(|_| Reply::text("Not asked.")).await;
    let stack = Stack::with_agent(model, "").await;
    let caller = CALLER.replace("URL", &told.base_url());
    stack.configure(&format!(
        "{AUTH}\n{caller}[agents.told]\nprovider = \"told\"\nmodel = \"m\"\n"
    ));
    stack
}

/// Sends a request as somebody, and returns status and body of the answer.
async fn sent(stack: &Stack, key: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let url = format!("{}/api/v1/agent{path}", stack.url());
    let request = stack.http.request(method.parse().unwrap(), url);
    let answer = request.bearer_auth(key).json(body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers.get(name)?.to_str().ok()
}

#[tokio::test]
async fn a_provider_is_told_what_its_table_names() {
    let told = Model::start(|_| Reply::text("Told.")).await;
    let stack = stack(&told).await;
    let _running = stack.start().await;
    let keys = [
        create(&stack, &["--tenant", "acme", "--owner", "ann"]).await,
        create(&stack, &["--tenant", "globex", "--owner", "ann"]).await,
    ];
    // The conversations of both tenants have one name, and different metadata.
    for (key, plan) in keys.iter().zip([json!({"plan": "gold"}), json!({})]) {
        let new = json!({"id": "told-facts", "agent": "told", "metadata": plan});
        let (status, body) = sent(&stack, key, "POST", "/conversations", &new).await;
        assert_eq!(status, 201, "{body}");
        let shown = sent(
            &stack,
            key,
            "GET",
            "/conversations/told-facts",
            &Value::Null,
        )
        .await
        .1;
        assert_eq!(shown["metadata"], plan);
        let client = GatewayClient::with_token(&stack.url(), Some(key)).unwrap();
        client.submit("told-facts", "hello", None).await.unwrap();
        ended(&stack, key, "told-facts").await;
    }
    let [acme, globex] = &told.requests()[..] else {
        panic!("one call a turn")
    };
    assert_eq!(
        acme.body["metadata"],
        json!({"plan": "gold", "tenant": "acme", "tags": ["plan:gold"]})
    );
    assert_eq!(globex.body["metadata"], json!({"tenant": "globex"}));
    assert_eq!(header(acme, "x-conversation"), Some("told-facts"));
    assert_eq!(header(acme, "x-plan"), Some("gold"));
    assert_eq!(header(globex, "x-plan"), None);
    let users = [acme, globex].map(|request| request.body["user"].as_str().unwrap());
    assert!(users.iter().all(|user| user.len() == 32), "{users:?}");
    assert_ne!(users[0], users[1], "owners of two tenants with one name");
    assert_eq!(stack.model.requests().len(), 0);
}

#[tokio::test]
async fn metadata_is_changed_as_a_whole_and_limited() {
    let told = Model::start(|_| Reply::text("Told.")).await;
    let stack = stack(&told).await;
    let _running = stack.start().await;
    let key = create(&stack, &["--tenant", "acme"]).await;
    let new =
        json!({"id": "told-metadata", "agent": "told", "metadata": {"plan": "gold", "team": "a"}});
    sent(&stack, &key, "POST", "/conversations", &new).await;
    let wrong = json!({"metadata": {"a key": "x"}, "title": "Other"});
    let (status, problem) = sent(
        &stack,
        &key,
        "PATCH",
        "/conversations/told-metadata",
        &wrong,
    )
    .await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_body")));
    let changed = json!({"metadata": {"plan": "silver"}});
    let (status, _) = sent(
        &stack,
        &key,
        "PATCH",
        "/conversations/told-metadata",
        &changed,
    )
    .await;
    assert_eq!(status, 200);
    let shown = sent(
        &stack,
        &key,
        "GET",
        "/conversations/told-metadata",
        &Value::Null,
    )
    .await
    .1;
    assert_eq!(
        [&shown["metadata"], &shown["title"]],
        [&changed["metadata"], &json!("")]
    );
    let client = GatewayClient::with_token(&stack.url(), Some(&key)).unwrap();
    client.submit("told-metadata", "hello", None).await.unwrap();
    ended(&stack, &key, "told-metadata").await;
    let request = told.requests().remove(0);
    assert_eq!(request.body["metadata"]["plan"], "silver");
    assert_eq!(
        request.body.get("user"),
        None,
        "nobody owns the conversation"
    );
}
