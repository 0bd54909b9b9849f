//! Every request that fails is answered with a problem, which tells nothing internal.

use everturn_gateway::problem::Code;
use everturn_store::StoreError;
use serde_json::json;

use crate::support::{Answer, TestGateway};

#[tokio::test]
async fn another_tenants_conversation_does_not_exist() {
    let gateway = TestGateway::start().await;
    gateway.store.add("theirs", "other tenant");
    for id in ["theirs", "none"] {
        for path in [
            "",
            "/messages",
            "/events",
            "/events/stream",
            "/execution-status",
        ] {
            let answer = gateway.get(&format!("/conversations/{id}{path}")).await;
            answer.assert_problem(404, "conversation_not_found");
        }
        for (path, body) in [
            ("messages", json!({"content": "x"})),
            ("cancel", json!({})),
            ("resume", json!({})),
        ] {
            let answer = gateway
                .post(&format!("/conversations/{id}/{path}"), &body)
                .await;
            answer.assert_problem(404, "conversation_not_found");
        }
        let path = format!("/conversations/{id}");
        gateway
            .patch(&path, &json!({"title": "mine"}))
            .await
            .assert_problem(404, "conversation_not_found");
        gateway
            .delete(&path)
            .await
            .assert_problem(404, "conversation_not_found");
    }
    assert_eq!(gateway.turns.take(), [""; 0]);
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_a_problem() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let send =
        async |request: reqwest::RequestBuilder| Answer::of(request.send().await.unwrap()).await;
    let post = |path| {
        gateway
            .request("POST", path)
            .header("content-type", "application/json")
    };
    for path in [
        "/conversations",
        "/conversations/c/messages",
        "/chat",
        "/conversations/c/cancel",
    ] {
        send(post(path).body("{"))
            .await
            .assert_problem(400, "invalid_body");
        send(post(path).body(&b"\xff\xfe"[..]))
            .await
            .assert_problem(400, "invalid_body");
    }
    send(gateway.request("POST", "/conversations").body("{}"))
        .await
        .assert_problem(400, "invalid_body");
    send(post("/conversations/c/messages"))
        .await
        .assert_problem(400, "invalid_body");
}

#[tokio::test]
async fn a_request_for_what_is_not_there_is_a_problem() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let send =
        async |request: reqwest::RequestBuilder| Answer::of(request.send().await.unwrap()).await;
    send(gateway.request("PUT", "/conversations/c"))
        .await
        .assert_problem(405, "method_not_allowed");
    assert_eq!(
        send(gateway.request("PUT", "/chat")).await.header("allow"),
        "POST"
    );
    gateway
        .get("/nothing")
        .await
        .assert_problem(404, "not_found");
    gateway
        .get("/api/v2")
        .await
        .assert_problem(404, "not_found");
    gateway
        .get("/conversations/a%2Fb")
        .await
        .assert_problem(400, "invalid_id");
    gateway
        .get("/conversations/%FF")
        .await
        .assert_problem(400, "invalid_id");
    gateway
        .get(&format!("/conversations/{}", "x".repeat(101)))
        .await
        .assert_problem(400, "invalid_id");
    let own = send(
        gateway
            .request("GET", "/conversations/none")
            .header("x-request-id", "mine"),
    )
    .await;
    own.assert_problem(404, "conversation_not_found");
    assert_eq!(
        (own.header("x-request-id"), &own.json()["instance"]),
        ("mine", &json!("/api/v1/agent/conversations/none"))
    );
    assert!(
        !gateway
            .get("/conversations/c")
            .await
            .header("x-request-id")
            .is_empty()
    );
}

#[tokio::test]
async fn store_errors_say_nothing_internal() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway.store.lock().broken = Some(|| StoreError::Unavailable("secret".into()));
    let answer = gateway.get("/conversations/c").await;
    answer.assert_problem(503, "store_unavailable");
    assert_eq!(answer.header("retry-after"), "1");
    gateway
        .get("/readyz")
        .await
        .assert_problem(503, "store_unavailable");
    assert_eq!(gateway.get("/livez").await.status, 200);
    gateway.store.lock().broken = Some(|| StoreError::DiskFull("secret".into()));
    let not_ready = gateway.get("/readyz").await;
    not_ready.assert_problem(503, "store_unavailable");
    let detail = not_ready.json()["detail"].clone();
    assert!(detail.as_str().unwrap().contains("disk"), "{detail}");
    gateway.store.lock().broken = Some(|| StoreError::Corrupt("secret".to_owned()));
    gateway
        .get("/conversations/c")
        .await
        .assert_problem(500, "internal");
    gateway.store.lock().broken = Some(|| StoreError::Conflict("secret".to_owned()));
    gateway
        .get("/conversations/c")
        .await
        .assert_problem(409, "conflict");
    gateway.store.lock().broken = None;
    assert_eq!(gateway.get("/readyz").await.status, 200);
}

#[test]
fn codes_are_stable_words() {
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let mut unique = codes.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), codes.len());
    assert!(codes.iter().all(|code| {
        code.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    }));
    assert!(
        Code::ALL
            .iter()
            .all(|code| code.status().is_client_error() || code.status().is_server_error())
    );
}
