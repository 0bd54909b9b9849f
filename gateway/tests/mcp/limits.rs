//! The limits of waiting calls.

use std::{num::NonZeroU32, time::Duration};

use everturn_gateway::{GatewayConfig, TenantLimits};
use serde_json::json;

use super::{Client, begin, call, config, last, queued};
use crate::support::{TestGateway, until};

#[tokio::test]
async fn a_tenant_has_as_many_waiting_calls_as_streams() {
    let tenant = TenantLimits {
        open_streams: NonZeroU32::new(1),
        ..TenantLimits::default()
    };
    let gateway = TestGateway::with(GatewayConfig { tenant, ..config() }).await;
    let client = Client::new(&gateway);
    let stream = client.stream(1, "tools/call", call("hi", "k1")).await;
    let refused = client.ask("tools/call", call("hi", "k2")).await;
    assert_eq!(refused.status, 429);
    assert_eq!(
        refused.json()["error"]["data"]["code"],
        "too_many_streams_of_tenant"
    );
    assert_eq!(queued(&gateway).len(), 1, "a refused call sends no message");
    let mut task = call("hi", "k3");
    task["task"] = json!({});
    client.result("tools/call", task).await;
    assert_eq!(queued(&gateway).len(), 2, "a task waits in the store");
    drop(stream);
}

#[tokio::test]
async fn a_wait_ends_and_its_turn_goes_on() {
    let mcp_wait = Duration::from_millis(200);
    let gateway = TestGateway::with(GatewayConfig {
        mcp_wait,
        ..config()
    })
    .await;
    let client = Client::new(&gateway);
    let result = client.result("tools/call", call("hi", "k")).await;
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["code"], "turn_running");
    assert_eq!(result["structuredContent"]["status"], "running");
    let mut stream = client.stream(1, "tools/call", call("hi", "k")).await;
    assert_eq!(
        last(&mut stream).await["result"]["structuredContent"]["code"],
        "turn_running"
    );
    begin(&gateway).await.complete("42");
    let result = client.result("tools/call", call("hi", "k")).await;
    assert_eq!(result["structuredContent"]["answer"], "42");
}

#[tokio::test]
async fn a_client_with_a_token_learns_that_the_agent_still_works() {
    let heartbeat = Duration::from_millis(50);
    let gateway = TestGateway::with(GatewayConfig {
        heartbeat,
        ..config()
    })
    .await;
    let client = Client::new(&gateway);
    let mut params = call("hi", "k");
    params["_meta"]["progressToken"] = json!(1);
    let mut stream = client.stream(1, "tools/call", params).await;
    for _ in 0..3 {
        let (message, _) = super::message(&mut stream).await;
        assert_eq!(message["method"], "notifications/progress");
    }
}

#[tokio::test]
async fn a_stopping_gateway_leaves_a_call_to_another() {
    let config = GatewayConfig {
        shutdown_grace: Duration::from_millis(300),
        ..config()
    };
    let gateway = TestGateway::with(config).await;
    let client = Client::new(&gateway);
    let mut stream = client.stream(1, "tools/call", call("hi", "k")).await;
    let stopped = async {
        // The second call has come, too.
        until(async || gateway.turns.calls.lock().unwrap().len() >= 2).await;
        gateway.shutdown.cancel();
        while let Some(event) = stream.next().await {
            assert!(event.data.is_empty(), "no answer: {}", event.data);
        }
    };
    let (document, ()) = tokio::join!(client.ask("tools/call", call("hi", "k")), stopped);
    assert_eq!(document.status, 503);
    assert_eq!(document.json()["error"]["data"]["code"], "shutting_down");
    assert!(!document.header("retry-after").is_empty());
}
