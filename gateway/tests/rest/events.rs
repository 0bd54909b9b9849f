//! The event log, and what is made from it: the status, the timeline.

use everturn_gateway::GatewayConfig;
use serde_json::{Value, json};

use crate::support::{Answer, TestGateway};

/// The first number of a page of events, their number, and whether there are more.
fn sequences(answer: &Answer) -> (u64, usize, bool) {
    let body = answer.json();
    let events = body["events"].as_array().unwrap();
    let first = events.first();
    let first = first.map_or(0, |event| event["sequence_number"].as_u64().unwrap());
    (first, events.len(), body["has_more"].as_bool().unwrap())
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
async fn pages_are_read_backwards_from_the_end() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    for _ in 0..25 {
        gateway.store.append("c", "m", "act", "{}");
    }
    let page = async |query: &str| {
        gateway
            .get(&format!("/conversations/c/events{query}"))
            .await
    };
    for (query, expected) in [
        ("?before=4294967295&limit=10", (16, 10, true)),
        ("?before=16&limit=10", (6, 10, true)),
        ("?before=6&limit=10", (1, 5, false)),
        ("?before=11&limit=10", (1, 10, false)),
        ("?before=16&limit=10&from_sequence=8", (8, 8, false)),
        ("?before=16&limit=10&from_sequence=6", (6, 10, false)),
        ("?before=16&limit=10&from_sequence=5", (6, 10, true)),
    ] {
        assert_eq!(sequences(&page(query).await), expected, "{query}");
    }
    for query in ["?before=1", "?before=0"] {
        let empty = page(query).await.json();
        assert_eq!(empty, json!({"events": [], "has_more": false}), "{query}");
    }
    page("?before=-1")
        .await
        .assert_problem(400, "invalid_parameter");
}

#[tokio::test]
async fn pages_and_timelines_of_large_events_end_at_their_bytes() {
    let gateway = TestGateway::with(GatewayConfig {
        max_page_bytes: 250_000,
        max_timeline_bytes: 250_000,
        ..GatewayConfig::default()
    })
    .await;
    gateway.store.add("c", "default");
    let large = format!(r#"{{"content":"{}"}}"#, "x".repeat(100_000));
    for _ in 0..50 {
        gateway.store.append("c", "m", "user_message", &large);
    }
    let page = gateway.get("/conversations/c/events").await.json();
    assert_eq!(page["events"].as_array().unwrap().len(), 2);
    assert_eq!(page["has_more"], true);
    let reads = gateway.store.lock().reads;
    let timeline = gateway.get("/conversations/c/messages").await.json();
    assert_eq!(timeline["timeline"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&timeline["total"], &timeline["nextBefore"]),
        (&json!(2), &json!(49))
    );
    let reads = gateway.store.lock().reads - reads;
    assert_eq!(reads, 1, "what is not shown is not read");
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
        json!({"is_running": false, "last_sequence": 0, "current_message_id": null, "model": null, "waiting": null})
    );
    gateway.store.append("c", "m", "user_message", "{}");
    gateway.store.begin("c", "m", "run");
    assert_eq!(
        status().await,
        json!({"is_running": true, "last_sequence": 1, "current_message_id": "m", "model": null, "waiting": null})
    );
}

/// A gateway with a conversation of 600 turns, of four events and three items each.
async fn long_conversation() -> TestGateway {
    let gateway = TestGateway::with(GatewayConfig {
        max_timeline_items: 1500,
        ..GatewayConfig::default()
    })
    .await;
    gateway.store.add("c", "default");
    let call = r#"{"tool_name":"t","tool_input":{},"execution_id":"e","call_id":"k"}"#;
    for turn in 0..600 {
        let message = format!(r#"{{"content":"{turn}","message_id":"m{turn}"}}"#);
        for (event_type, data) in [
            ("user_message", message.as_str()),
            ("thought", r#"{"thought":" "}"#),
            ("act", call),
            ("assistant_message", r#"{"content":"x"}"#),
        ] {
            gateway.store.append("c", "m", event_type, data);
        }
    }
    gateway
}

/// The sequence numbers of a timeline's items.
fn numbers(timeline: &Value) -> Vec<u64> {
    let items = timeline["timeline"].as_array().unwrap().iter();
    let numbers = items.map(|item| item["sequenceNumber"].as_u64());
    numbers.map(Option::unwrap).collect()
}

#[tokio::test]
async fn timeline_is_made_from_the_events() {
    let gateway = long_conversation().await;
    gateway.store.add("empty", "default");
    let timeline = async |id: &str| {
        gateway
            .get(&format!("/conversations/{id}/messages"))
            .await
            .json()
    };
    assert_eq!(
        timeline("empty").await,
        json!({"conversationId": "empty", "timeline": [], "total": 0, "nextBefore": null})
    );
    let shown = timeline("c").await;
    assert_eq!(shown["total"], 1500);
    assert_eq!(shown["nextBefore"], 401);
    let (items, numbers) = (&shown["timeline"], numbers(&shown));
    assert_eq!((numbers.len(), numbers[1499]), (1500, 2400));
    assert!(numbers.is_sorted());
    assert_eq!(items[0]["type"], "user_message");
    assert_eq!(
        items[1],
        json!({"id": "act-403", "type": "tool_call", "sequenceNumber": 403,
        "timestamp": 1_767_323_046_080_u64, "toolName": "t", "toolInput": {}, "executionId": "e", "callId": "k"})
    );
}

#[tokio::test]
async fn a_timeline_is_read_backwards_a_few_items_at_a_time() {
    let gateway = long_conversation().await;
    let page = async |query: &str| {
        let path = format!("/conversations/c/messages{query}");
        gateway.get(&path).await
    };
    let rest = page("?before=401").await.json();
    assert_eq!(rest["total"], 300);
    assert_eq!(rest["nextBefore"], json!(null));
    let few = page("?before=401&limit=2").await.json();
    assert_eq!(numbers(&few), [399, 400]);
    assert_eq!(few["nextBefore"], 398);
    assert_eq!(numbers(&rest)[298..], numbers(&few));
    assert_eq!(page("?before=1").await.json()["timeline"], json!([]));
    for bad in ["?limit=0", "?limit=1501", "?before=-1", "?before=x"] {
        page(bad).await.assert_problem(400, "invalid_parameter");
    }
}
