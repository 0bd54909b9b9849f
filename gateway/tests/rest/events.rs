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
    ] {
        assert_eq!(sequences(&page(query).await), expected, "{query}");
    }
    for query in ["?before=1", "?before=0"] {
        let empty = page(query).await.json();
        assert_eq!(empty, json!({"events": [], "has_more": false}), "{query}");
    }
    for bad in ["?before=-1", "?before=5&from_sequence=2"] {
        page(bad).await.assert_problem(400, "invalid_parameter");
    }
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
        json!({"conversationId": "c", "timeline": [], "total": 0, "nextBefore": null})
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
    assert_eq!(
        (&shown["total"], &shown["nextBefore"]),
        (&json!(1500), &json!(401))
    );
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
    // The page before it has the rest, a few items at a time when they are wanted so.
    let older = async |query: &str| {
        gateway
            .get(&format!("/conversations/c/messages{query}"))
            .await
    };
    let rest = older("?before=401").await.json();
    assert_eq!(
        (&rest["total"], &rest["nextBefore"]),
        (&json!(300), &json!(null))
    );
    let few = older("?before=401&limit=2").await.json();
    let numbers = |page: &Value| -> Vec<u64> {
        let items = page["timeline"].as_array().unwrap();
        items
            .iter()
            .map(|item| item["sequenceNumber"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(
        (numbers(&few), &few["nextBefore"]),
        (vec![399, 400], &json!(398))
    );
    assert_eq!(numbers(&rest)[298..], numbers(&few));
    assert_eq!(older("?before=1").await.json()["timeline"], json!([]));
    for bad in ["?limit=0", "?limit=1501", "?before=-1", "?before=x"] {
        older(bad).await.assert_problem(400, "invalid_parameter");
    }
}
