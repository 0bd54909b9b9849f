//! An MCP server behind a URL with a habit.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Uri},
    response::Response,
};
use everturn_proto::words::Effect;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::client_at;
use crate::mcp::{McpServer, ServerLocation};

/// A request that the server got.
#[derive(Debug, Clone)]
pub(super) struct Got {
    pub(super) method: Method,
    pub(super) path: String,
    headers: HeaderMap,
    pub(super) message: Value,
}

impl Got {
    pub(super) fn is(&self, method: &str) -> bool {
        self.message["method"] == method
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Answers a request, or leaves it to [`plain`].
pub(super) type Habit = fn(&Got, usize) -> Option<Response>;

#[derive(Clone)]
pub(super) struct Server {
    habit: Habit,
    got: Arc<Mutex<Vec<Got>>>,
    pub(super) url: String,
}

impl Server {
    pub(super) async fn start(path: &str, habit: Habit) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            habit,
            got: Arc::default(),
            url: format!("http://{}{path}", listener.local_addr().unwrap()),
        };
        let router = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    pub(super) fn client(&self, effect: Effect) -> McpServer {
        let location = ServerLocation::Url {
            url: self.url.clone(),
            headers: vec![(
                "authorization".to_owned(),
                "Bearer a-long-secret".to_owned(),
            )],
            header_files: Vec::new(),
            oauth: None,
        };
        client_at(location, effect)
    }

    pub(super) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.got().iter().filter(|got| got.is(method)).count()
    }
}

async fn answer(
    State(server): State<Server>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let got = Got {
        method,
        path: uri.path().to_owned(),
        headers,
        message: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let earlier = {
        let mut all = server.got.lock().unwrap();
        all.push(got.clone());
        all.iter()
            .filter(|other| other.message["method"] == got.message["method"])
            .count()
            - 1
    };
    (server.habit)(&got, earlier).unwrap_or_else(|| plain(&got))
}

/// A server of protocol 2025-06-18 without sessions, and without a stream of events.
pub(super) fn plain(got: &Got) -> Response {
    if got.method != Method::POST {
        return respond(405, "", "");
    }
    if got.message["id"].is_null() {
        return respond(202, "", "");
    }
    let error = json!({"error": {"code": -32601, "message": "no such method"}});
    let mut answer = result(got).unwrap_or(error);
    answer["id"] = got.message["id"].clone();
    answer["jsonrpc"] = "2.0".into();
    respond(200, "application/json", &answer.to_string())
}

fn result(got: &Got) -> Option<Value> {
    match got.message["method"].as_str()? {
        "initialize" => Some(
            json!({"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": "1"}}}),
        ),
        "tools/list" => {
            let tool = json!({"name": "echo", "inputSchema": {"type": "object"}});
            Some(json!({"result": {"tools": [tool]}}))
        }
        "tools/call" => Some(json!({"result": {"content": [{"type": "text", "text": "echo"}]}})),
        _ => None,
    }
}

pub(super) fn respond(status: u16, content_type: &str, body: &str) -> Response {
    let response = Response::builder().status(status);
    let response = match content_type {
        "" => response,
        content_type => response.header("content-type", content_type),
    };
    response.body(Body::from(body.to_owned())).unwrap()
}

/// Answers a call with a body, in which `ID` stands for the request's id.
pub(super) fn called(got: &Got, content_type: &str, body: &str) -> Option<Response> {
    let id = got.message["id"].to_string();
    let is_call = got.is("tools/call");
    is_call.then(|| respond(200, content_type, &body.replace("ID", &id)))
}

pub(super) const ECHO: &str =
    r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"echo"}]}}"#;
