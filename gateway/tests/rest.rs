//! The endpoints over HTTP, except the streams.

#![allow(clippy::unwrap_used)]

mod support;

use everturn_gateway::{GatewayConfig, problem::Code};
use everturn_proto::words::AgentExecutionStatus;
use everturn_store::{AgentExecution, ParentCall, StoreError};
use serde_json::{Value, json};
use support::{Answer, TestGateway};

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
    let chat = gateway
        .post(
            "/chat",
            &json!({"message": "x", "conversation_id": "theirs"}),
        )
        .await;
    chat.assert_problem(404, "conversation_not_found");
    assert_eq!(gateway.turns.take(), [""; 0]);
}

#[tokio::test]
async fn message_is_stored_then_handed_over() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    for on_busy in ["queue", "steer", "interrupt"] {
        let body = json!({"content": "hi", "on_busy": on_busy, "later": true});
        let answer = gateway.post("/conversations/c/messages", &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let answer = answer.json();
        assert_eq!(
            (&answer["conversation_id"], &answer["status"]),
            (&json!("c"), &json!("queued"))
        );
        let message_id = answer["message_id"].as_str().unwrap();
        assert_eq!(
            gateway.turns.take(),
            [format!("submit c {message_id} {on_busy}")]
        );
        let stored = gateway.store.lock().messages.pop().unwrap();
        assert_eq!(
            (stored.message_id.as_str(), stored.content.as_str()),
            (message_id, "hi")
        );
        assert_eq!((stored.client_message_id, stored.max_queued), (None, 100));
    }
}

#[tokio::test]
async fn repeated_message_is_one_message() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let path = "/conversations/c/messages";
    let body = json!({"content": "hi", "message_id": "mine"});
    let first = gateway.post(path, &body).await.json();
    let again = gateway.post(path, &body).await.json();
    assert_eq!(first, again);
    let by_header = gateway
        .request("POST", path)
        .header("Idempotency-Key", "mine")
        .json(&json!({"content": "hi"}))
        .send();
    assert_eq!(Answer::of(by_header.await.unwrap()).await.json(), first);
    assert_eq!(
        gateway.turns.take().len(),
        3,
        "a message that waits is handed over again"
    );
    assert_eq!(gateway.store.lock().messages.len(), 1);

    let message_id = first["message_id"].as_str().unwrap();
    gateway.store.take(message_id, message_id, false);
    let later = gateway.post(path, &body).await;
    assert_eq!(
        (later.status.as_u16(), later.json()["status"].as_str()),
        (202, Some("accepted_before"))
    );
    assert_eq!(later.json()["message_id"], first["message_id"]);
    assert_eq!(
        gateway.turns.take(),
        [""; 0],
        "one that was answered is not"
    );

    let other = gateway
        .post(
            path,
            &json!({"content": "something else", "message_id": "mine"}),
        )
        .await;
    other.assert_problem(409, "idempotency_conflict");
    assert!(other.text.contains("`mine`"), "{}", other.text);
    assert_eq!(gateway.store.lock().messages.len(), 1);
}

#[tokio::test]
async fn message_is_kept_while_the_engine_is_away() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    *gateway.turns.is_down.lock().unwrap() = true;
    let body = json!({"content": "hi", "message_id": "mine"});
    let answer = gateway.post("/conversations/c/messages", &body).await;
    answer.assert_problem(503, "temporal_unavailable");
    assert!(answer.text.contains("stored as queued") && answer.header("retry-after") == "1");
    assert_eq!(gateway.store.lock().messages.len(), 1);
    *gateway.turns.is_down.lock().unwrap() = false;
    assert_eq!(
        gateway
            .post("/conversations/c/messages", &body)
            .await
            .status,
        202
    );
    assert_eq!(gateway.store.lock().messages.len(), 1);
    *gateway.turns.is_down.lock().unwrap() = true;
    let chat = gateway.post("/chat", &json!({"message": "x"})).await;
    chat.assert_problem(503, "temporal_unavailable");
    let cancel = gateway
        .post("/conversations/c/cancel", &json!({"message_id": "m"}))
        .await;
    cancel.assert_problem(503, "temporal_unavailable");
}

#[tokio::test]
async fn messages_that_cannot_be_are_refused() {
    let config = GatewayConfig {
        max_message_bytes: 10,
        max_queued_messages: 1,
        ..GatewayConfig::default()
    };
    let gateway = TestGateway::with(config).await;
    gateway.store.add("c", "default");
    let post = async |body: Value| gateway.post("/conversations/c/messages", &body).await;
    for blank in ["", " \n\t"] {
        post(json!({"content": blank}))
            .await
            .assert_problem(400, "invalid_message");
    }
    post(json!({"content": "a\0b"}))
        .await
        .assert_problem(400, "invalid_message");
    post(json!({"content": "ä".repeat(6)}))
        .await
        .assert_problem(413, "message_too_long");
    post(json!({"content": "x".repeat(100_000)}))
        .await
        .assert_problem(413, "body_too_large");
    post(json!({"content": "x", "message_id": "a b"}))
        .await
        .assert_problem(400, "invalid_id");
    post(json!({"content": "x", "on_busy": "wait"}))
        .await
        .assert_problem(400, "invalid_body");
    post(json!({})).await.assert_problem(400, "invalid_body");
    post(json!({"content": 5}))
        .await
        .assert_problem(400, "invalid_body");
    for no_object in [
        json!([]),
        json!(["x", null, "queue"]),
        json!("x"),
        json!(null),
    ] {
        post(no_object).await.assert_problem(400, "invalid_body");
    }
    let request = gateway
        .request("POST", "/conversations/c/messages")
        .header("Idempotency-Key", "a b");
    let odd_key = request
        .json(&json!({"content": "x", "message_id": "m"}))
        .send()
        .await
        .unwrap();
    Answer::of(odd_key).await.assert_problem(400, "invalid_id");
    assert_eq!(gateway.turns.take(), [""; 0]);
    assert_eq!(post(json!({"content": "ä".repeat(5)})).await.status, 202);
    let full = post(json!({"content": "one more"})).await;
    full.assert_problem(429, "queue_full");
    assert_eq!(full.header("retry-after"), "5");
}

#[tokio::test]
async fn everything_wrong_is_a_problem() {
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

#[tokio::test]
async fn events_come_in_pages() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    for number in 1..=250 {
        gateway.store.append(
            "c",
            "m",
            "act",
            &format!(r#"{{"tool_input":{{"z":9007199254740993,"a":{number}}}}}"#),
        );
    }
    let page = async |query: &str| {
        gateway
            .get(&format!("/conversations/c/events{query}"))
            .await
    };
    let sequences = |answer: &Answer| {
        let body = answer.json();
        let events = body["events"].as_array().unwrap();
        let first = events
            .first()
            .map_or(0, |event| event["sequence_number"].as_u64().unwrap());
        (first, events.len(), body["has_more"].as_bool().unwrap())
    };
    let first = page("?limit=100").await;
    assert_eq!(sequences(&first), (1, 100, true));
    assert!(
        first
            .text
            .contains(r#""event_data":{"tool_input":{"z":9007199254740993,"a":1}}"#),
        "to the letter"
    );
    assert_eq!(
        sequences(&page("?from_sequence=0&limit=250").await),
        (1, 250, false)
    );
    assert_eq!(
        sequences(&page("?from_sequence=101&limit=149").await),
        (101, 149, true)
    );
    assert_eq!(
        sequences(&page("?from_sequence=101&limit=150").await),
        (101, 150, false)
    );
    assert_eq!(sequences(&page("?from_sequence=251").await), (0, 0, false));
    assert_eq!(sequences(&page("?limit=1000").await), (1, 250, false));
    for bad in [
        "?limit=0",
        "?limit=1001",
        "?limit=x",
        "?from_sequence=-1",
        "?from_sequence=5000000000",
    ] {
        page(bad).await.assert_problem(400, "invalid_parameter");
    }
    for number in 251..=1001 {
        assert_eq!(gateway.store.append("c", "m", "act", "{}"), number);
    }
    assert_eq!(
        sequences(&page("").await),
        (1, 1000, true),
        "a page is as large as it may be when nobody says"
    );
}

#[tokio::test]
async fn status_is_answered_from_the_store() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let status = async || {
        gateway
            .get("/conversations/c/execution-status")
            .await
            .json()
    };
    assert_eq!(
        status().await,
        json!({"is_running": false, "last_sequence": 0, "current_message_id": null})
    );
    gateway.store.append("c", "m", "user_message", "{}");
    gateway.store.lock().current = Some("m".to_owned());
    assert_eq!(
        status().await,
        json!({"is_running": true, "last_sequence": 1, "current_message_id": "m"})
    );
}

#[tokio::test]
async fn timeline_is_made_from_the_events() {
    let gateway = TestGateway::with(GatewayConfig {
        max_timeline_items: 1500,
        ..GatewayConfig::default()
    })
    .await;
    gateway.store.add("c", "default");
    let timeline = async || gateway.get("/conversations/c/messages").await.json();
    assert_eq!(
        timeline().await,
        json!({"conversationId": "c", "timeline": [], "total": 0})
    );
    for turn in 0..600 {
        gateway.store.append(
            "c",
            "m",
            "user_message",
            &format!(r#"{{"content":"{turn}","message_id":"m{turn}"}}"#),
        );
        gateway
            .store
            .append("c", "m", "thought", r#"{"thought":" "}"#);
        gateway.store.append(
            "c",
            "m",
            "act",
            r#"{"tool_name":"t","tool_input":{},"execution_id":"e","call_id":"k"}"#,
        );
        gateway
            .store
            .append("c", "m", "assistant_message", r#"{"content":"x"}"#);
    }
    let shown = timeline().await;
    assert_eq!(shown["total"], 1800);
    let items = shown["timeline"].as_array().unwrap();
    assert_eq!(
        (items.len(), &items[1499]["sequenceNumber"]),
        (1500, &json!(2400))
    );
    let numbers: Vec<_> = items
        .iter()
        .map(|item| item["sequenceNumber"].as_u64().unwrap())
        .collect();
    assert!(numbers.is_sorted());
    assert_eq!(items[0]["type"], "user_message");
    assert_eq!(
        items[1],
        json!({"id": "act-403", "type": "tool_call", "sequenceNumber": 403,
        "timestamp": 1_767_323_045_678_u64, "toolName": "t", "toolInput": {}, "executionId": "e", "callId": "k"})
    );
}

/// The `number`th execution of a conversation: the first is the turn's own, the others are its sub-agents.
fn execution(number: u32) -> AgentExecution {
    let name = |number: u32| format!("run_{number}");
    let call = |number: u32| ParentCall {
        execution_id: format!("exec_{number}"),
        call_id: format!("call_{number}"),
        tool_name: "delegate".to_owned(),
        tool_input: everturn_proto::Json::parse(r#"{"agent":"a","task":"t"}"#).unwrap(),
    };
    let is_sub_agent = number > 0;
    AgentExecution {
        id: name(number),
        message_id: "m".to_owned(),
        agent: "a".to_owned(),
        status: AgentExecutionStatus::Running,
        depth: u32::from(is_sub_agent),
        parent_execution_id: is_sub_agent.then(|| name(0)),
        root_execution_id: name(0),
        steps: number,
        error_code: None,
        input_tokens: 10,
        output_tokens: 5,
        started_at: chrono::DateTime::from_timestamp_millis(1_767_323_045_000 + i64::from(number))
            .unwrap(),
        finished_at: None,
        parent_call: is_sub_agent.then(|| call(number)),
    }
}

#[tokio::test]
async fn executions_are_a_tree_in_pages() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway.store.add("foreign", "other tenant");
    gateway.store.lock().executions = (0..5)
        .map(|number| ("c".to_owned(), execution(number)))
        .collect();
    let mut seen = Vec::new();
    let mut path = "/conversations/c/executions?limit=2".to_owned();
    loop {
        let page = gateway.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let page = page.json();
        seen.extend(page["executions"].as_array().unwrap().clone());
        let Some(next) = page["next_after"].as_str() else {
            break;
        };
        path = format!("/conversations/c/executions?limit=2&after={next}");
    }
    assert_eq!(seen.len(), 5);
    assert_eq!(
        (
            &seen[0]["parent_execution_id"],
            &seen[0]["parentActToolCall"]
        ),
        (&Value::Null, &Value::Null)
    );
    let parameters = json!({"agent": "a", "task": "t"});
    let call = json!({"execution_id": "exec_3", "call_id": "call_3",
        "name": "delegate", "parameters": parameters,
        "tool_name": "delegate", "tool_input": parameters});
    assert_eq!(
        (
            &seen[3]["parent_execution_id"],
            &seen[3]["parentActToolCall"]
        ),
        (&json!("run_0"), &call)
    );
    let one = gateway.get("/conversations/c/executions/run_3").await;
    assert_eq!((one.status.as_u16(), &one.json()), (200, &seen[3]));
    for bad in ["limit=0", "limit=201", "limit=x", "after=x", "after=2026~c"] {
        gateway
            .get(&format!("/conversations/c/executions?{bad}"))
            .await
            .assert_problem(400, "invalid_parameter");
    }
    let get = async |path: &str| gateway.get(&format!("/conversations/{path}")).await;
    get("c/executions/run_9")
        .await
        .assert_problem(404, "agent_execution_not_found");
    get("c/executions/a%20b")
        .await
        .assert_problem(400, "invalid_id");
    get("foreign/executions")
        .await
        .assert_problem(404, "conversation_not_found");
    get("foreign/executions/run_0")
        .await
        .assert_problem(404, "conversation_not_found");
}

#[tokio::test]
async fn cancel_names_one_message_and_is_repeatable() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let path = "/conversations/c/cancel";
    let idle = Answer::of(gateway.request("POST", path).send().await.unwrap()).await;
    assert_eq!(
        (idle.status.as_u16(), idle.json()),
        (202, json!({"status": "not_running"}))
    );
    assert_eq!(gateway.turns.take(), [""; 0]);

    gateway.store.lock().current = Some("now".to_owned());
    for _ in 0..2 {
        assert_eq!(
            gateway.post(path, &json!({})).await.json(),
            json!({"status": "cancelling"})
        );
    }
    assert_eq!(gateway.turns.take(), ["cancel c now", "cancel c now"]);
    let named = gateway.post(path, &json!({"message_id": "other"})).await;
    assert_eq!(
        (named.status.as_u16(), gateway.turns.take()),
        (202, vec!["cancel c other".to_owned()])
    );
    gateway
        .post(path, &json!({"message_id": "a b"}))
        .await
        .assert_problem(400, "invalid_id");
    gateway
        .post(path, &json!(["now"]))
        .await
        .assert_problem(400, "invalid_body");
    let untyped = gateway
        .request("POST", path)
        .body("{}")
        .send()
        .await
        .unwrap();
    Answer::of(untyped)
        .await
        .assert_problem(400, "invalid_body");
    assert_eq!(gateway.post(path, &Value::Null).await.status, 202);
    assert_eq!(gateway.turns.take(), ["cancel c now"]);

    *gateway.turns.is_idle.lock().unwrap() = true;
    assert_eq!(
        gateway.post(path, &json!({})).await.json(),
        json!({"status": "not_running"})
    );
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
