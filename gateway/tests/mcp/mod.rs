//! `/mcp`: agents as tools, over real HTTP.

mod calls;
mod cancels;
mod limits;
mod tasks;
mod wire;

use std::time::Duration;

use everturn_gateway::{GatewayConfig, OfferedAgent};
use serde_json::{Value, json};

use crate::support::{Answer, Sse, TestGateway, turn::Turn, until};

/// The newest version with a handshake.
const HANDSHAKE: &str = "2025-11-25";
/// The version without a handshake.
const ALONE: &str = "2026-07-28";

/// A client of `/mcp`, without what a library adds.
struct Client<'g> {
    gateway: &'g TestGateway,
    version: &'static str,
    session: &'static str,
    /// The capabilities that each request without a handshake names.
    capabilities: Value,
}

impl<'g> Client<'g> {
    fn new(gateway: &'g TestGateway) -> Self {
        Self {
            gateway,
            version: HANDSHAKE,
            session: "s1",
            capabilities: json!({}),
        }
    }

    fn alone(gateway: &'g TestGateway) -> Self {
        Self {
            version: ALONE,
            ..Self::new(gateway)
        }
    }

    /// A request to `/mcp` with a message.
    fn post(&self, message: &Value, accept: &str) -> reqwest::RequestBuilder {
        let mut message = message.clone();
        let mut request = self.gateway.request("POST", "/mcp");
        request = request
            .header("accept", accept)
            .header("mcp-protocol-version", self.version);
        if self.version == ALONE {
            let meta = &mut message["params"]["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(ALONE);
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            request = request
                .header("mcp-method", text(&message["method"]))
                .header("mcp-name", text(&message["params"]["name"]));
        } else {
            request = request.header("mcp-session-id", self.session);
        }
        request.json(&message)
    }

    /// Sends a request, and reads the whole response.
    async fn ask(&self, method: &str, params: Value) -> Answer {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let response = self
            .post(&message, "application/json")
            .send()
            .await
            .unwrap();
        Answer::of(response).await
    }

    /// Returns the result of a request.
    async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        let mut body = answer.json();
        assert_eq!(
            (answer.status.as_u16(), &body["id"]),
            (200, &json!(7)),
            "{body}"
        );
        assert!(body.get("error").is_none(), "{body}");
        body["result"].take()
    }

    /// Sends a request whose answer is a stream.
    async fn stream(&self, id: u32, method: &str, params: Value) -> Sse {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let both = "application/json, text/event-stream";
        Sse::of(self.post(&message, both).send().await.unwrap())
    }

    async fn notify(&self, method: &str, params: Value) -> u16 {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let response = self
            .post(&message, "application/json")
            .send()
            .await
            .unwrap();
        response.status().as_u16()
    }
}

/// The parameters of a call of the agent `default` with a key.
fn call(message: &str, key: &str) -> Value {
    json!({
        "name": "default",
        "arguments": {"message": message},
        "_meta": {"everturn/idempotency_key": key},
    })
}

/// Plays the worker: waits for the only message of a conversation that waits, and begins its turn.
async fn begin(gateway: &TestGateway) -> Turn {
    let (conversation_id, message_id) = waiting(gateway).await;
    Turn::begin(&gateway.store, &conversation_id, &message_id)
}

/// The conversation and the id of the only message that waits.
async fn waiting(gateway: &TestGateway) -> (String, String) {
    until(async || queued(gateway).len() == 1).await;
    queued(gateway).pop().unwrap()
}

fn queued(gateway: &TestGateway) -> Vec<(String, String)> {
    let queued = "SELECT conversation_id, id FROM messages WHERE status = 'queued'";
    let rows = sqlx::query_as(queued).fetch_all(gateway.store.database.pool());
    crate::support::store::finish(rows).unwrap()
}

/// A gateway with the agent `default`, which looks at the store often.
fn config() -> GatewayConfig {
    GatewayConfig {
        poll_interval: Duration::from_millis(50),
        drain: Duration::ZERO,
        agents: vec![OfferedAgent::named("default")],
        ..GatewayConfig::default()
    }
}

/// The next message of a stream, and the id of its event.
async fn message(stream: &mut Sse) -> (Value, String) {
    loop {
        let event = stream.next().await.expect("the stream ended");
        if !event.data.is_empty() {
            return (serde_json::from_str(&event.data).unwrap(), event.id);
        }
    }
}

/// The answer at the end of a stream.
async fn last(stream: &mut Sse) -> Value {
    loop {
        let (message, _) = message(stream).await;
        if message.get("id").is_some() {
            return message;
        }
    }
}
