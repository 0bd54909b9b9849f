//! An authorization server, and an MCP server that wants its tokens, both in the test's process. Each can be made to
//! say what an attacker would say.

mod people;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The only scope that the tool needs.
pub(crate) const SCOPE: &str = "notes:read";

/// Stands before what the server repeats of a token.
pub(crate) const SAID: &str = "the server heard";

/// Both servers. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Authority {
    issuer_port: u16,
    server_port: u16,
    state: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    clients: BTreeMap<String, String>,
    says: Says,
    lifetime: Option<Duration>,
    tokens: Vec<Token>,
    asked: Vec<String>,
    refused: usize,
    calls: Vec<String>,
    /// The codes of people by code: the person, and the request for the consent.
    codes: BTreeMap<String, (String, BTreeMap<String, String>)>,
    /// The tokens that the client took back.
    taken_back: Vec<String>,
    /// Waits before each answer with a refreshed token.
    refresh_pause: Duration,
}

/// A token that was given.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) value: String,
    pub(crate) client: String,
    /// What it was asked for with.
    pub(crate) form: BTreeMap<String, String>,
    ends: Option<Instant>,
    is_revoked: bool,
    /// The token for later tokens, which is good for one use.
    refresh: Option<String>,
}

impl Token {
    fn holds(&self) -> bool {
        !self.is_revoked && self.ends.is_none_or(|ends| Instant::now() < ends)
    }
}

/// What the servers say in place of the truth.
#[derive(Default)]
pub(crate) struct Says {
    /// The URL of the metadata in the challenge.
    pub(crate) resource_metadata: Option<String>,
    /// The server's own name in its metadata.
    pub(crate) resource: Option<String>,
    /// The authorization server that it names.
    pub(crate) authorization_server: Option<String>,
    /// The issuer's name in its own metadata.
    pub(crate) issuer: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    /// The token endpoint redirects there.
    pub(crate) moved: Option<String>,
    /// The server redirects there once it has got a token.
    pub(crate) server_moved: Option<String>,
    /// The challenge says nothing, the metadata is that of OpenID, and the secret is taken in the body alone.
    pub(crate) is_old: bool,
    /// No token is ever good enough.
    pub(crate) takes_nothing: bool,
    /// Answers repeat the request's token.
    pub(crate) repeats: bool,
}

impl Authority {
    /// Starts both servers, which know these clients and their secrets.
    pub(crate) async fn start(clients: &[(&str, &str)]) -> Self {
        let listeners = [
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
        ];
        let [issuer_port, server_port] =
            [&listeners[0], &listeners[1]].map(|it| it.local_addr().unwrap().port());
        let authority = Self {
            issuer_port,
            server_port,
            state: Arc::default(),
        };
        for (id, secret) in clients {
            let pair = ((*id).to_owned(), (*secret).to_owned());
            authority.state().clients.extend([pair]);
        }
        let issuer = Router::new()
            .route("/token", post(token))
            .route("/authorize", get(people::authorize))
            .route("/revoke", post(people::take_back))
            .fallback(get(metadata))
            .with_state(authority.clone());
        let server = Router::new()
            .route("/mcp", post(serve).get(StatusCode::METHOD_NOT_ALLOWED))
            .route("/about", get(about))
            .route("/.well-known/oauth-protected-resource/mcp", get(about))
            .with_state(authority.clone());
        let [of_issuer, of_server] = listeners;
        tokio::spawn(async move { axum::serve(of_issuer, issuer).await });
        tokio::spawn(async move { axum::serve(of_server, server).await });
        authority
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.server_port)
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.issuer_port)
    }

    /// The entry of `[egress] allow` for the authorization server. The server needs none.
    pub(crate) fn allowed(&self) -> String {
        format!("127.0.0.1:{}", self.issuer_port)
    }

    /// The tables of the server, whose client is `more`.
    pub(crate) fn tables(&self, name: &str, of_server: &str, of_oauth: &str) -> String {
        let (url, issuer) = (self.url(), self.issuer());
        format!(
            "\n[mcp.{name}]\nurl = \"{url}\"\n{of_server}\n[mcp.{name}.oauth]\nissuer = \"{issuer}\"\n{of_oauth}\n"
        )
    }

    /// Changes what the servers say.
    pub(crate) fn say(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.state().says);
    }

    /// Tokens hold this long from now on.
    pub(crate) fn tokens_hold(&self, lifetime: Duration) {
        self.state().lifetime = Some(lifetime);
    }

    /// The answers with refreshed tokens wait this long from now on.
    pub(crate) fn refreshes_after(&self, pause: Duration) {
        self.state().refresh_pause = pause;
    }

    /// The tokens that the client took back.
    pub(crate) fn taken_back(&self) -> Vec<String> {
        self.state().taken_back.clone()
    }

    /// Takes all tokens back.
    pub(crate) fn revoke(&self) {
        for token in &mut self.state().tokens {
            token.is_revoked = true;
        }
    }

    /// The tokens that were given, in their order.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        self.state().tokens.clone()
    }

    /// True when the token that was given last has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().tokens.last().is_some_and(|it| !it.holds())
    }

    /// The paths that the authorization server was asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    /// How often the server has answered with 401.
    pub(crate) fn refused(&self) -> usize {
        self.state().refused
    }

    /// The clients that have called the tool.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    fn state(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap()
    }
}

/// Somebody that must not be sent anything. It counts its requests.
#[derive(Clone, Default)]
pub(crate) struct Attacker {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Attacker {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let attacker = Self {
            port: listener.local_addr().unwrap().port(),
            heard: Arc::default(),
        };
        let heard = Arc::clone(&attacker.heard);
        let hear = any(
            move |uri: Uri, headers: HeaderMap, body: String| async move {
                let request = format!("{uri} {headers:?} {body}");
                heard.lock().unwrap().push(request);
                "{}"
            },
        );
        let router = Router::new().fallback(hear);
        tokio::spawn(async move { axum::serve(listener, router).await });
        attacker
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

/// The metadata of the authorization server.
async fn metadata(State(authority): State<Authority>, uri: Uri) -> Response {
    let mut state = authority.state();
    state.asked.push(uri.path().to_owned());
    let says = &state.says;
    let is_here = if says.is_old {
        uri.path() == "/.well-known/openid-configuration"
    } else {
        uri.path() == "/.well-known/oauth-authorization-server"
    };
    if !is_here {
        return StatusCode::NOT_FOUND.into_response();
    }
    let own = authority.issuer();
    let endpoint = format!("{own}/token");
    let method = if says.is_old {
        "client_secret_post"
    } else {
        "client_secret_basic"
    };
    Json(json!({
        "issuer": says.issuer.clone().unwrap_or(own),
        "token_endpoint": says.token_endpoint.clone().unwrap_or(endpoint),
        "token_endpoint_auth_methods_supported": [method],
        "authorization_endpoint": format!("{}/authorize", authority.issuer()),
        "revocation_endpoint": format!("{}/revoke", authority.issuer()),
        "code_challenge_methods_supported": ["S256"],
    }))
    .into_response()
}

fn form(text: &str) -> BTreeMap<String, String> {
    let url: Url = format!("http://form/?{text}").parse().unwrap();
    url.query_pairs().into_owned().collect()
}

/// The client that the header names, and its secret.
fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get("authorization")?.to_str().unwrap();
    let pair = STANDARD.decode(value.strip_prefix("Basic ")?).unwrap();
    let pair = String::from_utf8(pair).unwrap();
    let decoded = |text: &str| form(&format!("v={text}")).remove("v").unwrap();
    let (id, secret) = pair.split_once(':')?;
    Some((decoded(id), decoded(secret)))
}

/// The token endpoint.
async fn token(State(authority): State<Authority>, headers: HeaderMap, body: String) -> Response {
    let mut pause = Duration::ZERO;
    let answer = issued(&authority, &headers, &body, &mut pause);
    tokio::time::sleep(pause).await;
    answer
}

/// The answer of the token endpoint. Sets the pause before the answer.
fn issued(
    authority: &Authority,
    headers: &HeaderMap,
    body: &str,
    pause: &mut Duration,
) -> Response {
    let mut state = authority.state();
    state.asked.push("/token".to_owned());
    if let Some(place) = &state.says.moved {
        return (
            StatusCode::TEMPORARY_REDIRECT,
            [("location", place.clone())],
        )
            .into_response();
    }
    let form = form(body);
    let client = if state.says.is_old {
        let word = |name: &str| form.get(name).cloned().unwrap_or_default();
        Some((word("client_id"), word("client_secret")))
    } else {
        basic(headers)
    };
    let known = client.filter(|(id, secret)| state.clients.get(id) == Some(secret));
    let refused = |status: StatusCode, error: &str| {
        let said =
            json!({"error": error, "error_description": format!("{SAID} {body} {headers:?}")});
        (status, Json(said)).into_response()
    };
    let Some((client, _)) = known else {
        return refused(StatusCode::UNAUTHORIZED, "invalid_client");
    };
    let is_of_person = form["grant_type"] != "client_credentials";
    let client = if is_of_person {
        let Some(person) = people::person(&mut state, &form) else {
            return refused(StatusCode::BAD_REQUEST, "invalid_grant");
        };
        person
    } else {
        client
    };
    if form["grant_type"] == "refresh_token" {
        *pause = state.refresh_pause;
    }
    let refresh = is_of_person.then(|| format!("refresh.{}", uuid::Uuid::new_v4().simple()));
    let value = format!("{}.{}", client, uuid::Uuid::new_v4().simple());
    let lifetime = state.lifetime;
    state.tokens.push(Token {
        value: value.clone(),
        client,
        form,
        ends: lifetime.map(|lifetime| Instant::now() + lifetime),
        is_revoked: false,
        refresh: refresh.clone(),
    });
    let mut answer = json!({"access_token": value, "token_type": "Bearer"});
    if let Some(refresh) = refresh {
        answer["refresh_token"] = refresh.into();
    }
    if let Some(lifetime) = lifetime {
        answer["expires_in"] = lifetime.as_secs().into();
    }
    Json(answer).into_response()
}

/// The metadata of the server.
async fn about(State(authority): State<Authority>) -> Json<Value> {
    let state = authority.state();
    let says = &state.says;
    let issuer = says.authorization_server.clone();
    Json(json!({
        "resource": says.resource.clone().unwrap_or_else(|| authority.url()),
        "authorization_servers": [issuer.unwrap_or_else(|| authority.issuer())],
        "scopes_supported": [SCOPE, "notes:write"],
    }))
}

/// The answer to a request without a good token.
fn challenge(authority: &Authority, says: &Says) -> Response {
    if says.is_old {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let place = says.resource_metadata.clone();
    let place = place.unwrap_or_else(|| authority.url().replace("/mcp", "/about"));
    let challenge = format!("Bearer resource_metadata=\"{place}\", scope=\"{SCOPE}\"");
    (
        StatusCode::UNAUTHORIZED,
        [("www-authenticate", challenge)],
        "no",
    )
        .into_response()
}

/// The MCP server.
async fn serve(
    State(authority): State<Authority>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    let mut state = authority.state();
    let sent = headers.get("authorization");
    let sent = sent.and_then(|value| value.to_str().unwrap().strip_prefix("Bearer "));
    let mut tokens = state.tokens.iter();
    let token = tokens.find(|token| Some(token.value.as_str()) == sent && token.holds());
    let Some(token) = token.cloned().filter(|_| !state.says.takes_nothing) else {
        state.refused += 1;
        return challenge(&authority, &state.says);
    };
    if let Some(place) = &state.says.server_moved {
        return (
            StatusCode::TEMPORARY_REDIRECT,
            [("location", place.clone())],
        )
            .into_response();
    }
    let words = if state.says.repeats {
        format!("{SAID} {} and Bearer {}", token.value, token.value)
    } else {
        token.client.clone()
    };
    let mut answer = match request["method"].as_str().unwrap() {
        "initialize" => json!({"result": {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": "1"},
        }}),
        "tools/list" => json!({"result": {"tools": [
            {"name": "whoami", "description": words, "inputSchema": {"type": "object"}},
        ]}}),
        "tools/call" => {
            state.calls.push(token.client.clone());
            json!({"result": {"content": [{"type": "text", "text": words}]}})
        }
        "ping" => json!({"result": {}}),
        _ if request["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => json!({"error": {"code": -32601, "message": words}}),
    };
    answer["jsonrpc"] = "2.0".into();
    answer["id"] = request["id"].clone();
    Json(answer).into_response()
}
