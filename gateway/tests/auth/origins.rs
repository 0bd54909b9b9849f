//! Which pages may call: CORS, and pages at a gateway that requires no credential.

use everturn_gateway::AuthConfig;
use serde_json::json;

use super::{PAGE, acme, config, gateway};
use crate::support::{Answer, TestGateway};

async fn preflight(gateway: &TestGateway, origin: &str) -> Answer {
    let request = gateway
        .request("OPTIONS", "/conversations")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type",
        );
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn pages_of_the_allow_list_may_call() {
    let gateway = gateway(config()).await;
    let answer = preflight(&gateway, PAGE).await;
    assert_eq!(answer.status, 200, "a browser sends no credential with it");
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    assert_eq!(answer.header("access-control-allow-credentials"), "true");
    assert_eq!(answer.header("access-control-max-age"), "7200");
    for method in ["GET", "POST", "PATCH", "DELETE"] {
        assert!(
            answer
                .header("access-control-allow-methods")
                .contains(method)
        );
    }
    let headers = answer.header("access-control-allow-headers");
    for header in [
        "authorization",
        "content-type",
        "idempotency-key",
        "last-event-id",
        "x-request-id",
    ] {
        assert!(headers.contains(header), "{headers}");
    }

    let key = acme(&gateway).await;
    let request = gateway
        .request("GET", "/conversations")
        .bearer_auth(key.reveal())
        .header("origin", PAGE);
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.header("access-control-allow-origin")
        ),
        (200, PAGE)
    );
    let exposed = answer.header("access-control-expose-headers");
    for header in ["x-request-id", "retry-after", "x-conversation-id"] {
        assert!(exposed.contains(header), "{exposed}");
    }
    assert!(answer.header("vary").contains("origin"));
    // A page must be able to read why it was refused.
    let refused = Answer::of(
        gateway
            .request("GET", "/conversations")
            .header("origin", PAGE)
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(
        (
            refused.status.as_u16(),
            refused.header("access-control-allow-origin")
        ),
        (401, PAGE)
    );
}

#[tokio::test]
async fn other_pages_may_not() {
    let with_list = gateway(config()).await;
    let without = gateway(AuthConfig {
        allowed_origins: Vec::new(),
        ..config()
    })
    .await;
    for gateway in [&with_list, &without] {
        for origin in [
            "https://evil.example",
            "null",
            "http://app.example.com",
            "https://app.example.com:8443",
        ] {
            let answer = preflight(gateway, origin).await;
            assert_eq!(answer.header("access-control-allow-origin"), "", "{origin}");
        }
    }
    assert_eq!(
        preflight(&without, PAGE)
            .await
            .header("access-control-allow-origin"),
        ""
    );
}

#[tokio::test]
async fn pages_of_the_own_machine_may_call_where_they_are_trusted() {
    const DEV_SERVER: &str = "http://localhost:5173";
    let open = |trusts_loopback_pages| AuthConfig {
        required: false,
        allowed_origins: Vec::new(),
        trusts_loopback_pages,
        ..config()
    };
    let (dev, production) = (gateway(open(true)).await, gateway(open(false)).await);
    for (gateway, origin, allowed, status) in [
        (&dev, DEV_SERVER, DEV_SERVER, 201),
        (&dev, "https://evil.example", "", 403),
        (&production, DEV_SERVER, "", 403),
    ] {
        let answer = preflight(gateway, origin).await;
        assert_eq!(
            answer.header("access-control-allow-origin"),
            allowed,
            "{origin}"
        );
        let create = gateway
            .request("POST", "/conversations")
            .header("origin", origin)
            .json(&json!({}));
        let answer = Answer::of(create.send().await.unwrap()).await;
        assert_eq!(answer.status, status, "{origin}");
    }
}

#[tokio::test]
async fn a_gateway_that_asks_for_nothing_serves_programs_and_its_own_pages() {
    let gateway = gateway(AuthConfig {
        required: false,
        ..config()
    })
    .await;
    let create = async |header: (&str, &str)| {
        let request = gateway
            .request("POST", "/conversations")
            .header(header.0, header.1)
            .json(&json!({}));
        Answer::of(request.send().await.unwrap()).await
    };
    let own = format!("http://{}", gateway.address);
    for header in [
        ("x-none", ""),
        ("origin", PAGE),
        ("origin", &own),
        ("sec-fetch-site", "same-origin"),
    ] {
        assert_eq!(create(header).await.status, 201, "{header:?}");
    }
    for header in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        create(header)
            .await
            .assert_problem(403, "origin_not_allowed");
    }
}
