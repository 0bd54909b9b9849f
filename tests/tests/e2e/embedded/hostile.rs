//! A tenant that attacks a gateway in every way at once: the gateway stays within its memory, nothing ends, and the
//! other tenant loses nothing. How long the other one waits is measured by `make bench CASE=hostile`.

use everturn_client::{Frame, GatewayClient};
use everturn_tests::{
    append::Appender,
    crowd::allow_streams,
    events::{assert_gap_free, types},
    hostile::{Attack, Force, Target, sums},
    model::{Model, Reply, Request},
    stack::{Stack, frames_until},
};
use reqwest::StatusCode;

use crate::embedded::keys::{AUTH, create};

const MIB: usize = 1024 * 1024;
/// What the gateway may hold for all tenants and for one, in MiB, and what it needs beside that.
const ALL: usize = 64;
const OF_TENANT: usize = 32;
const BESIDE: usize = 160;
const CONNECTIONS: usize = 200;
const TURNS: usize = 8;
const EVENT: usize = 256 * 1024;

/// A turn of the other tenant. Returns its conversation.
async fn turn(client: &GatewayClient) -> String {
    let conversation = client.create_conversation(None).await.unwrap();
    client.submit(&conversation, "hello", None).await.unwrap();
    let is_end = |frame: &Frame| frame.event == "complete";
    frames_until(client, &conversation, 0, is_end).await;
    conversation
}

#[tokio::test]
async fn a_hostile_tenant_takes_nothing_from_another_one() {
    allow_streams(4 * CONNECTIONS);
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi there.")).await)
        .await
        .with_gateways(1);
    let (all, of_tenant) = (ALL * MIB, OF_TENANT * MIB);
    stack.configure(&format!(
        "{AUTH}\n[limits]\nmemory_bytes = {all}\ntenant_memory_bytes = {of_tenant}\nrequests_per_second = 50\n\
         request_burst = 100\nopen_streams = 100\nconcurrent_turns = 4\n[reconciler]\ngrace = \"1h\"\n"
    ));
    let (worker, gateway) = stack.start_with_one_worker().await;
    let key = create(&stack, &["--tenant", "quiet"]).await;
    let quiet = GatewayClient::with_token(&stack.gateway_url(0), Some(&key)).unwrap();
    let target = Target {
        address: ([127, 0, 0, 1], stack.gateway_port(0)).into(),
        key: create(&stack, &["--tenant", "loud"]).await,
        conversation: "loud".to_owned(),
    };
    let appender = Appender::begin_for(&stack.store().await, "loud", "loud").await;
    for _ in 0..8 {
        appender.append(&"x".repeat(EVENT)).await;
    }
    turn(&quiet).await;
    let before = gateway.peak_memory_bytes();
    let force = Force {
        requests_per_second: 50,
        connections: CONNECTIONS,
    };
    let attack = Attack::begin(&target, force);
    for _ in 0..TURNS {
        let conversation = turn(&quiet).await;
        let path = format!("/api/v1/agent/conversations/{conversation}/events");
        let url = format!("{}{path}", stack.gateway_url(0));
        let answer = stack.http.get(url).bearer_auth(&key).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let page: serde_json::Value = answer.json().await.unwrap();
        let events = page["events"].as_array().unwrap();
        assert_gap_free(events);
        assert!(types(events).ends_with("complete"), "{events:#?}");
    }
    let (_, refused) = sums(&attack.answers());
    assert!(refused > 0, "{:?}", attack.answers());
    let grown = usize::try_from(gateway.peak_memory_bytes() - before).unwrap() / MIB;
    println!(
        "the gateway has grown by {grown} MiB, {:?}",
        attack.answers()
    );
    assert!(grown < ALL + BESIDE, "by {grown} MiB");
    assert!(worker.runs() && gateway.runs());
}
