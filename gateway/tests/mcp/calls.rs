//! Calls: their results, their progress, and the same call again.

use everturn_gateway::GatewayState;
use everturn_proto::words::AgentExecutionStatus;
use everturn_store::Access;
use serde_json::{Value, json};

use super::{Client, begin, call, config, last, message, queued, waiting};
use crate::{
    auth::key,
    support::{Answer, Sse, TestGateway, listen, ports, turn::Turn},
};

#[tokio::test]
async fn a_call_returns_the_answer_and_its_facts() {
    let gateway = TestGateway::with(config()).await;
    for client in [Client::new(&gateway), Client::alone(&gateway)] {
        let params = call("What is 6 times 7?", client.version);
        let (result, ()) = tokio::join!(client.result("tools/call", params), async {
            begin(&gateway).await.complete("42");
        });
        assert_eq!(result["content"], json!([{"type": "text", "text": "42"}]));
        assert_eq!(result["isError"], false);
        let facts = &result["structuredContent"];
        assert_eq!(
            (&facts["answer"], &facts["status"]),
            (&json!("42"), &json!("completed"))
        );
        assert_eq!(facts["usage"]["input_tokens"], 100);
        let conversation = facts["conversation"].as_str().unwrap();
        assert_eq!(
            result.get("resultType").is_some(),
            client.version == super::ALONE
        );

        // A further call continues the conversation.
        let arguments = json!({"message": "And times 2?", "conversation": conversation});
        let params = json!({"name": "default", "arguments": arguments});
        let client = Client {
            session: "other",
            ..client
        };
        let (result, ()) = tokio::join!(client.result("tools/call", params), async {
            begin(&gateway).await.complete("84");
        });
        assert_eq!(result["structuredContent"]["conversation"], conversation);
        assert_eq!(result["structuredContent"]["answer"], "84");
    }
}

#[tokio::test]
async fn a_call_with_a_token_streams_its_progress() {
    let gateway = TestGateway::with(config()).await;
    let client = Client::new(&gateway);
    let mut params = call("hi", "k");
    params["_meta"]["progressToken"] = json!("p1");
    let mut stream = client.stream(3, "tools/call", params).await;
    let first = stream.next().await.unwrap();
    assert!(
        first.data.is_empty() && !first.id.is_empty(),
        "a client can continue from the first event"
    );
    begin(&gateway).await.complete("42");
    let mut steps = Vec::new();
    let answer = loop {
        let (message, _) = message(&mut stream).await;
        if message.get("id").is_some() {
            break message;
        }
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "p1");
        steps.push(message["params"]["progress"].as_u64().unwrap());
    };
    assert!(
        !steps.is_empty() && steps.is_sorted_by(|before, after| before < after),
        "{steps:?}"
    );
    assert_eq!(
        (
            &answer["id"],
            &answer["result"]["structuredContent"]["answer"]
        ),
        (&json!(3), &json!("42"))
    );
    assert!(
        stream.next().await.is_none(),
        "the answer is the last event"
    );
}

#[tokio::test]
async fn the_same_call_again_joins_its_turn_and_costs_nothing() {
    let gateway = TestGateway::with(config()).await;
    let client = Client::new(&gateway);
    let first = client.stream(1, "tools/call", call("hi", "k")).await;
    let (conversation_id, message_id) = waiting(&gateway).await;
    // The client is gone. Its turn goes on, and another client with the key gets the result.
    drop(first);
    let other = Client {
        session: "s2",
        ..Client::alone(&gateway)
    };
    let (joined, ()) = tokio::join!(other.result("tools/call", call("hi", "k")), async {
        Turn::begin(&gateway.store, &conversation_id, &message_id).complete("42");
    });
    let later = client.result("tools/call", call("hi", "k")).await;
    let facts = |result: &Value| result["structuredContent"].clone();
    assert_eq!(facts(&joined)["answer"], "42");
    assert_eq!(facts(&later), facts(&joined));
    assert_eq!(sent(&gateway), 1);
    assert!(
        !gateway
            .turns
            .take()
            .iter()
            .any(|call| call.starts_with("cancel"))
    );

    // The header of the REST API names the key, too, and the id of a request in a session is a key of its own.
    let message = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "default", "arguments": {"message": "hi"},
    }});
    let request = client
        .post(&message, "application/json")
        .header("Idempotency-Key", "k");
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(facts(&answer.json()["result"]), facts(&joined));
    let mut streams = Vec::new();
    for (session, id) in [("s1", 1), ("s1", 1), ("s1", 2), ("s2", 1)] {
        let client = Client {
            session,
            ..Client::new(&gateway)
        };
        let params = json!({"name": "default", "arguments": {"message": "hi"}});
        streams.push(client.stream(id, "tools/call", params).await);
    }
    assert_eq!(queued(&gateway).len(), 3, "one for each request");

    let other = client.ask("tools/call", call("something else", "k")).await;
    assert_eq!(
        (
            other.status.as_u16(),
            &other.json()["error"]["data"]["code"]
        ),
        (409, &json!("idempotency_conflict"))
    );
}

#[tokio::test]
async fn another_gateway_continues_a_cut_stream() {
    let gateway = TestGateway::with(config()).await;
    let client = Client::new(&gateway);
    let mut params = call("hi", "k");
    params["_meta"]["progressToken"] = json!(5);
    let mut stream = client.stream(11, "tools/call", params).await;
    let first = stream.next().await.unwrap();
    let turn = begin(&gateway).await;
    let (_, position) = message(&mut stream).await;
    assert_ne!(position, first.id);
    gateway.serving.abort();

    let ports = ports(
        &gateway.store,
        &gateway.keys,
        &gateway.stream,
        &gateway.turns,
    );
    let (address, ..) = listen(GatewayState::new(ports, config())).await;
    let resume = |position: &str| {
        let request = crate::support::client().get(format!("http://{address}/mcp"));
        let request = request.header("mcp-protocol-version", super::HANDSHAKE);
        request.header("last-event-id", position).send()
    };
    for position in [first.id.as_str(), &position] {
        let mut stream = Sse::of(resume(position).await.unwrap());
        if position == first.id {
            turn.complete("42");
        }
        let answer = last(&mut stream).await;
        assert_eq!(answer["id"], 11, "the id of the request that was cut");
        assert_eq!(answer["result"]["structuredContent"]["answer"], "42");
    }
    let wrong = Answer::of(resume("nonsense").await.unwrap()).await;
    assert_eq!(
        (
            wrong.status.as_u16(),
            &wrong.json()["error"]["data"]["code"]
        ),
        (400, &json!("invalid_parameter"))
    );
    assert_eq!(sent(&gateway), 1);
}

#[tokio::test]
async fn a_turn_without_an_answer_is_an_error_with_its_code() {
    let gateway = TestGateway::with(config()).await;
    let client = Client::new(&gateway);
    let ends = [
        (AgentExecutionStatus::Failed, "failed", "step_limit"),
        (AgentExecutionStatus::Cancelled, "cancelled", "cancelled"),
    ];
    for (end, status, code) in ends {
        let (result, ()) = tokio::join!(client.result("tools/call", call("hi", code)), async {
            begin(&gateway).await.end(0, end);
        });
        assert_eq!(result["isError"], true);
        let facts = &result["structuredContent"];
        assert_eq!(
            (&facts["status"], &facts["code"]),
            (&json!(status), &json!(code))
        );
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .starts_with(code),
            "{result}"
        );
    }
}

#[tokio::test]
async fn wrong_arguments_are_told_to_the_model() {
    let gateway = TestGateway::with(config()).await;
    let client = Client::new(&gateway);
    for (arguments, code) in [
        (json!({}), "invalid_body"),
        (json!({"message": 7}), "invalid_body"),
        (json!({"message": "hi", "agent": "x"}), "invalid_body"),
        (json!({"message": " "}), "invalid_message"),
        (
            json!({"message": "hi", "conversation": "none"}),
            "conversation_not_found",
        ),
        (
            json!({"message": "hi", "conversation": "a/b"}),
            "invalid_id",
        ),
    ] {
        let params = json!({"name": "default", "arguments": arguments});
        let result = client.result("tools/call", params).await;
        assert_eq!(result["structuredContent"]["code"], code, "{result}");
        assert_eq!(result["isError"], true);
    }
    let unknown = client
        .ask(
            "tools/call",
            json!({"name": "nobody", "arguments": {"message": "hi"}}),
        )
        .await;
    let error = &unknown.json()["error"];
    assert_eq!(
        (&error["code"], &error["data"]["code"]),
        (&json!(-32602), &json!("unknown_agent"))
    );
    assert!(gateway.store.messages().is_empty());
}

#[tokio::test]
async fn a_caller_reaches_only_its_own_conversations() {
    let auth = everturn_gateway::AuthConfig {
        required: true,
        ..Default::default()
    };
    let mut gateway = TestGateway::with(everturn_gateway::GatewayConfig { auth, ..config() }).await;
    let ann = Access {
        owner_id: Some("ann".to_owned()),
        ..Access::tenant("acme")
    };
    gateway.store.add_of("hers", ann.clone());
    let of_ann = key(&gateway, ann, "read write", None).await;
    gateway.present(&of_ann.reveal());
    let (hers, ()) = tokio::join!(
        async {
            Client::new(&gateway)
                .result("tools/call", call("hi", "k"))
                .await
        },
        async { begin(&gateway).await.complete("42") }
    );
    let conversation = hers["structuredContent"]["conversation"].clone();
    let message_id = hers["structuredContent"]["message_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let task = format!("{message_id}@{}", conversation.as_str().unwrap());

    for (tenant_id, owner_id) in [("acme", Some("bob")), ("globex", None)] {
        let access = Access {
            tenant_id: tenant_id.to_owned(),
            owner_id: owner_id.map(str::to_owned),
        };
        let other = key(&gateway, access, "read write", None).await;
        gateway.present(&other.reveal());
        let client = Client::new(&gateway);
        for name in [&conversation, &json!("hers")] {
            let params =
                json!({"name": "default", "arguments": {"message": "hi", "conversation": name}});
            let result = client.result("tools/call", params).await;
            assert_eq!(
                result["structuredContent"]["code"],
                "conversation_not_found"
            );
        }
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let refused = client.ask(method, json!({"taskId": task})).await;
            assert_eq!(refused.json()["error"]["code"], -32602, "{method}");
        }
        assert_eq!(
            client.result("tasks/list", json!({})).await["tasks"],
            json!([])
        );
        // An equal key of another owner is another call.
        let _stream = client.stream(1, "tools/call", call("hi", "k")).await;
        let (conversation_id, message_id) = waiting(&gateway).await;
        Turn::begin(&gateway.store, &conversation_id, &message_id).complete("another answer");
    }
    assert_eq!(sent(&gateway), 3);
}

/// The number of messages `hi` from clients.
fn sent(gateway: &TestGateway) -> usize {
    let messages = gateway.store.messages();
    messages.iter().filter(|message| message.1 == "hi").count()
}
