//! Limits of a tenant over HTTP: each is a 429 that says when to come back.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use everturn_gateway::{GatewayConfig, RequestRate, TenantLimits};
use serde_json::json;

use crate::support::{Answer, Sse, TestGateway};

async fn with_limits(tenant: TenantLimits) -> TestGateway {
    TestGateway::with(GatewayConfig {
        tenant,
        ..GatewayConfig::default()
    })
    .await
}

#[tokio::test]
async fn requests_over_the_rate_are_refused_and_health_is_not() {
    let slow = TenantLimits {
        requests: RequestRate {
            per_second: NonZeroU32::new(1),
            burst: NonZeroU32::new(3).unwrap(),
        },
        ..TenantLimits::default()
    };
    let gateway = with_limits(slow).await;
    let mut answered = 0;
    let refused = loop {
        let answer = gateway.get("/conversations").await;
        if answer.status != 200 {
            break answer;
        }
        answered += 1;
        assert!(answered < 1000, "nothing is refused");
    };
    refused.assert_problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), "1");
    assert!(answered >= 3, "a burst of 3 is allowed");
    for _ in 0..20 {
        assert_eq!(gateway.get("/livez").await.status, 200);
        assert_eq!(gateway.get("/readyz").await.status, 200);
    }
}

#[tokio::test]
async fn streams_of_a_tenant_are_limited_and_come_free_again() {
    let gateway = with_limits(TenantLimits {
        open_streams: NonZeroU32::new(2),
        ..TenantLimits::default()
    })
    .await;
    gateway.store.add("c", "default");
    let path = "/conversations/c/events/stream";
    let open = async || gateway.request("GET", path).send().await.unwrap();
    let (first, _second) = (Sse::of(open().await), Sse::of(open().await));
    let refused = Answer::of(open().await).await;
    refused.assert_problem(429, "too_many_streams_of_tenant");
    assert_eq!(refused.header("retry-after"), "5");
    assert_eq!(
        gateway.get("/conversations/c/events").await.status,
        200,
        "pages are no streams"
    );
    drop(first);
    let comes_free = async {
        while open().await.status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), comes_free)
        .await
        .expect("the place of a closed stream comes free");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let gateway = TestGateway::with(GatewayConfig {
        body_bytes: NonZeroUsize::new(100),
        ..GatewayConfig::default()
    })
    .await;
    gateway
        .post("/conversations", &json!({"title": "x".repeat(100)}))
        .await
        .assert_problem(413, "body_too_large");
    assert_eq!(
        gateway
            .post("/conversations", &json!({"title": "x"}))
            .await
            .status,
        201
    );
}
