//! The messages and the headers: handshakes of both eras, refusals, and the list of tools.

use everturn_gateway::OfferedAgent;
use everturn_store::Access;
use serde_json::{Value, json};

use super::{ALONE, Client, HANDSHAKE, config};
use crate::{
    auth::key,
    support::{Answer, TestGateway},
};

#[tokio::test]
async fn initialize_agrees_on_a_version() {
    let gateway = TestGateway::start().await;
    let client = Client::new(&gateway);
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        (HANDSHAKE, HANDSHAKE),
        (ALONE, HANDSHAKE),
        ("2031-01-01", HANDSHAKE),
    ] {
        let answer = client
            .ask("initialize", json!({"protocolVersion": asked}))
            .await;
        let result = &answer.json()["result"];
        assert_eq!(result["protocolVersion"], agreed, "{asked}");
        assert_eq!(result["serverInfo"]["name"], "everturn");
        assert!(result["capabilities"]["tools"].is_object());
        assert_eq!(
            result["capabilities"]["tasks"].is_object(),
            agreed == HANDSHAKE
        );
        assert!(
            result["instructions"]
                .as_str()
                .unwrap()
                .contains("conversation")
        );
        assert!(!answer.header("mcp-session-id").is_empty());
    }
    assert_eq!(
        client.notify("notifications/initialized", json!({})).await,
        202
    );
    assert_eq!(client.result("ping", json!({})).await, json!({}));
}

#[tokio::test]
async fn a_client_discovers_the_server_without_a_handshake() {
    let gateway = TestGateway::start().await;
    let client = Client::alone(&gateway);
    let result = client.result("server/discover", json!({})).await;
    assert_eq!(result["resultType"], "complete");
    assert!(
        result["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&json!(ALONE))
    );
    assert!(result["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object());
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "everturn"
    );
}

/// Sends a request of the version without a handshake, with a changed header.
async fn with_header(gateway: &TestGateway, name: &str, value: &str) -> Answer {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": ALONE,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"_meta": meta, "name": "default"});
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let mut request = gateway.request("POST", "/mcp").json(&message);
    for (header, right) in [
        ("mcp-protocol-version", ALONE),
        ("mcp-method", "tools/call"),
        ("mcp-name", "default"),
    ] {
        request = request.header(header, if header == name { value } else { right });
    }
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn headers_must_repeat_the_body() {
    let gateway = TestGateway::start().await;
    for header in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let answer = with_header(&gateway, header, "other").await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json()["error"]["code"], -32020, "{header}");
    }
    let base64 = with_header(&gateway, "mcp-name", "=?base64?ZGVmYXVsdA==?=").await;
    assert_eq!(base64.status, 200, "{}", base64.text);

    let unknown = Client {
        version: "2031-01-01",
        ..Client::new(&gateway)
    };
    let answer = unknown.ask("tools/list", json!({})).await;
    assert_eq!(answer.status, 400);
    let error = &answer.json()["error"];
    assert_eq!(
        (&error["code"], &error["data"]["requested"]),
        (&json!(-32022), &json!("2031-01-01"))
    );
    let bare = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": ALONE}});
    let answer = Client::new(&gateway).ask("tools/list", bare).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]["code"]),
        (400, &json!(-32602))
    );
}

#[tokio::test]
async fn wrong_requests_are_errors_of_json_rpc() {
    let gateway = TestGateway::start().await;
    let (handshake, alone) = (Client::new(&gateway), Client::alone(&gateway));
    let unknown = handshake.ask("resources/list", json!({})).await;
    assert_eq!(
        (unknown.status.as_u16(), &unknown.json()["error"]["code"]),
        (200, &json!(-32601))
    );
    let unknown = alone.ask("ping", json!({})).await;
    assert_eq!(
        (unknown.status.as_u16(), &unknown.json()["error"]["code"]),
        (404, &json!(-32601))
    );
    for body in ["[]", "{", "7"] {
        let request = gateway
            .request("POST", "/mcp")
            .header("content-type", "application/json");
        let answer = Answer::of(request.body(body).send().await.unwrap()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["id"]),
            (400, &Value::Null),
            "{body}"
        );
    }
    let request = gateway
        .request("POST", "/mcp")
        .header("content-type", "text/plain");
    let answer = Answer::of(request.body("{}").send().await.unwrap()).await;
    assert_eq!(answer.json()["error"]["data"]["code"], "invalid_body");
    for method in ["GET", "DELETE"] {
        let answer = Answer::of(gateway.request(method, "/mcp").send().await.unwrap()).await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.json()["error"]["data"]["code"], "method_not_allowed");
        assert!(answer.header("allow").contains("POST"));
    }
    let large = "x".repeat(gateway_limit());
    let answer = handshake.ask("tools/call", json!({"name": large})).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["error"]["data"]["code"], "body_too_large");
}

fn gateway_limit() -> usize {
    everturn_gateway::GatewayConfig::default().max_body_bytes() + 1
}

#[tokio::test]
async fn tools_are_the_agents_of_the_tenant_in_pages() {
    let mut agents: Vec<_> = (0..150)
        .map(|number| OfferedAgent::named(&format!("agent_{number:03}")))
        .collect();
    agents.reverse();
    agents[0].definition.description = "Adds numbers.".to_owned();
    let mut foreign = OfferedAgent::named("agent_of_acme");
    foreign.definition.tenants = vec!["acme".to_owned()];
    agents.push(foreign);
    let config = everturn_gateway::GatewayConfig { agents, ..config() };
    let gateway = TestGateway::with(config).await;
    let client = Client::new(&gateway);
    let first = client.result("tools/list", json!({})).await;
    let cursor = first["nextCursor"].clone();
    let second = client.result("tools/list", json!({"cursor": cursor})).await;
    assert_eq!(second.get("nextCursor"), None);
    let tools: Vec<_> = [&first, &second]
        .into_iter()
        .flat_map(|page| page["tools"].as_array().unwrap())
        .collect();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 150, "the agent of another tenant is no tool");
    assert!(names.is_sorted());
    assert_eq!(tools[149]["description"], "Adds numbers.");
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["message"]));
    assert_eq!(tools[0]["execution"]["taskSupport"], "optional");
    assert_eq!(
        first.get("resultType"),
        None,
        "older clients know no such field"
    );

    let alone = Client::alone(&gateway)
        .result("tools/list", json!({}))
        .await;
    assert_eq!(
        (&alone["resultType"], &alone["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    assert!(alone["ttlMs"].is_u64());
    let wrong = client.ask("tools/list", json!({"cursor": 7})).await;
    assert_eq!(wrong.json()["error"]["code"], -32602);
}

#[tokio::test]
async fn a_caller_needs_a_credential_and_its_scopes() {
    let auth = everturn_gateway::AuthConfig {
        required: true,
        ..Default::default()
    };
    let config = everturn_gateway::GatewayConfig { auth, ..config() };
    let mut gateway = TestGateway::with(config).await;
    let refused = Client::new(&gateway).ask("tools/list", json!({})).await;
    assert_eq!(
        (refused.status.as_u16(), refused.header("www-authenticate")),
        (401, "Bearer")
    );
    let body = refused.json();
    assert_eq!(body["error"]["data"]["code"], "unauthenticated");
    assert_eq!(
        body["id"],
        Value::Null,
        "a refusal is no answer of the server's program"
    );

    let reader = key(&gateway, Access::tenant("acme"), "read", None).await;
    gateway.present(&reader.reveal());
    let client = Client::new(&gateway);
    client.result("tools/list", json!({})).await;
    for (method, params) in [
        ("tools/call", super::call("hi", "k")),
        ("tasks/cancel", json!({"taskId": "m@c"})),
    ] {
        let refused = client.ask(method, params).await;
        assert_eq!(refused.status, 403);
        assert_eq!(
            refused.json()["error"]["data"]["code"],
            "insufficient_scope"
        );
    }
    let cancelled = json!({"requestId": 7});
    assert_eq!(
        client.notify("notifications/cancelled", cancelled).await,
        403
    );
    let writer = key(&gateway, Access::tenant("acme"), "write", None).await;
    gateway.present(&writer.reveal());
    assert_eq!(
        Client::new(&gateway)
            .ask("tools/list", json!({}))
            .await
            .status,
        403
    );
}
