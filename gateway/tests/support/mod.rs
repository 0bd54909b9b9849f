//! What the gateway's tests share: the store in memory, an engine that only records, and a gateway over real HTTP.

#![allow(dead_code, unreachable_pub)] // each test binary uses a part

pub mod rows;
pub mod store;
pub mod turn;
pub mod world;

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use eventsource_stream::{Event as SseEvent, EventStream, Eventsource};
use everturn_gateway::{
    GatewayConfig, GatewayState, Ports, TurnStarter, serve,
    turns::{
        ApprovalOutcome, HooksOutcome, RunningWorkflow, StartMessages, StartOutcome, TurnError,
    },
};
use everturn_proto::turn::ResolveApproval;
use everturn_store::{BlobFiles, BlobRules, Conversation, DueHooks, sqlite::SqliteStore};
use everturn_stream::InProcessStream;
use futures::{StreamExt, stream::BoxStream};
use reqwest::{
    Response, StatusCode,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use self::store::TestStore;

/// Waits until something is so.
pub async fn until(is_so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "it took too long"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// An engine that records calls, and is down or idle when told.
#[derive(Default)]
pub struct RecordingTurns {
    pub calls: Mutex<Vec<String>>,
    pub is_down: Mutex<bool>,
    pub is_idle: Mutex<bool>,
    /// How long it takes to tell which workflows run.
    pub look_takes: Mutex<Duration>,
    /// Conversations whose workflow does not run.
    pub lost: Mutex<HashSet<String>>,
    /// Conversations that the list does not show yet, though their workflow runs.
    pub unlisted: Mutex<HashSet<String>>,
    /// True when the list does not answer.
    pub is_list_down: Mutex<bool>,
    /// The attempt of each workflow's task.
    pub task_attempt: Mutex<u32>,
    /// What becomes of an answer to an approval.
    pub approval_outcome: Mutex<Option<ApprovalOutcome>>,
    /// What a start finds.
    pub start_outcome: Mutex<Option<StartOutcome>>,
    /// True when a started workflow runs on. Otherwise an operator terminates the workflow at once.
    pub starts_run: Mutex<bool>,
    /// What a start of hooks finds.
    pub hooks_outcome: Mutex<Option<HooksOutcome>>,
}

impl RecordingTurns {
    fn record(&self, call: String) -> Result<(), TurnError> {
        self.calls.lock().unwrap().push(call);
        if *self.is_down.lock().unwrap() {
            Err(TurnError("secret host refused".into()))
        } else {
            Ok(())
        }
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    fn runs(&self, conversation_id: &str) -> bool {
        !*self.is_idle.lock().unwrap() && !self.lost.lock().unwrap().contains(conversation_id)
    }
}

#[async_trait]
impl TurnStarter for RecordingTurns {
    async fn submit(&self, conversation: &Conversation, message_id: &str) -> Result<(), TurnError> {
        self.record(format!("submit {} {message_id}", conversation.id))
    }

    async fn signal(&self, conversation_id: &str, message_id: &str) -> Result<bool, TurnError> {
        self.record(format!("signal {conversation_id} {message_id}"))?;
        Ok(!*self.is_idle.lock().unwrap())
    }

    async fn start(
        &self,
        conversation: &Conversation,
        messages: StartMessages,
    ) -> Result<StartOutcome, TurnError> {
        let StartMessages {
            first,
            goes_on_at,
            has_waiting,
        } = messages;
        let from_step = goes_on_at.unwrap_or(0);
        self.record(format!(
            "start {} {first} from {from_step}{}",
            conversation.id,
            if has_waiting { ", then others" } else { "" }
        ))?;
        if *self.starts_run.lock().unwrap() {
            *self.is_idle.lock().unwrap() = false;
        }
        Ok(self
            .start_outcome
            .lock()
            .unwrap()
            .unwrap_or(StartOutcome::Started))
    }

    async fn start_hooks(&self, hooks: &DueHooks) -> Result<HooksOutcome, TurnError> {
        let DueHooks {
            conversation_id,
            message_id,
            steps,
            ..
        } = hooks;
        self.record(format!(
            "hooks {conversation_id} {message_id} after {steps}"
        ))?;
        let outcome = *self.hooks_outcome.lock().unwrap();
        Ok(outcome.unwrap_or(HooksOutcome::Started))
    }

    async fn resolve_approval(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        answer: ResolveApproval,
    ) -> Result<ApprovalOutcome, TurnError> {
        let conversation_id = asker(conversation_id, sub_agent);
        let input = answer
            .tool_input
            .as_ref()
            .map_or("", |input| input.as_str());
        self.record(format!(
            "{} {conversation_id} {} {} {input} by {}",
            answer.decision,
            answer.execution_id,
            answer.input_hash(),
            answer.resolved_by()
        ))?;
        Ok(self
            .approval_outcome
            .lock()
            .unwrap()
            .clone()
            .unwrap_or(ApprovalOutcome::Taken))
    }

    async fn tool_result(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        execution_id: &str,
    ) -> Result<(), TurnError> {
        self.record(format!(
            "result {} {execution_id}",
            asker(conversation_id, sub_agent)
        ))
    }

    async fn prepare(&self) -> Result<(), TurnError> {
        self.record("prepare".to_owned())
    }

    async fn workflow(&self, conversation_id: &str) -> Result<Option<RunningWorkflow>, TurnError> {
        self.record(format!("look {conversation_id}"))?;
        let takes = *self.look_takes.lock().unwrap();
        tokio::time::sleep(takes).await;
        let task_attempt = *self.task_attempt.lock().unwrap();
        let is_running = self.runs(conversation_id);
        Ok(is_running.then_some(RunningWorkflow { task_attempt }))
    }

    async fn running(&self, conversation_ids: &[String]) -> Result<HashSet<String>, TurnError> {
        self.record(format!("list {}", conversation_ids.join(" ")))?;
        if *self.is_list_down.lock().unwrap() {
            return Err(TurnError("no list".into()));
        }
        let takes = *self.look_takes.lock().unwrap();
        tokio::time::sleep(takes).await;
        let unlisted = self.unlisted.lock().unwrap();
        let is_listed = |id: &&String| self.runs(id) && !unlisted.contains(*id);
        Ok(conversation_ids.iter().filter(is_listed).cloned().collect())
    }

    async fn terminate(&self, conversation_id: &str, reason: &str) -> Result<(), TurnError> {
        self.record(format!("terminate {conversation_id} {reason}"))
    }

    async fn delete_runs(&self, conversation_id: &str) -> Result<(), TurnError> {
        self.record(format!("delete_runs {conversation_id}"))
    }

    async fn cancel(
        &self,
        conversation_id: &str,
        message_id: &str,
        reason: &str,
    ) -> Result<bool, TurnError> {
        assert!(reason.starts_with("cancelled by "), "{reason}");
        self.record(format!("cancel {conversation_id} {message_id}"))?;
        Ok(!*self.is_idle.lock().unwrap())
    }
}

/// Who asked: a conversation, or a sub-agent in it.
fn asker(conversation_id: &str, sub_agent: Option<&str>) -> String {
    sub_agent.map_or_else(
        || conversation_id.to_owned(),
        |call| format!("{conversation_id}/{call}"),
    )
}

/// A gateway on a port of its own.
pub struct TestGateway {
    pub address: SocketAddr,
    pub store: TestStore,
    /// API keys and sessions.
    pub keys: SqliteStore,
    pub stream: InProcessStream,
    pub turns: Arc<RecordingTurns>,
    pub shutdown: CancellationToken,
    pub serving: JoinHandle<std::io::Result<()>>,
    client: reqwest::Client,
}

/// A response that was read.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub async fn of(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        Self {
            status,
            headers,
            text: response.text().await.unwrap(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts that this is a problem with everything that one has.
    pub fn assert_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let body = self.json();
        assert_eq!(
            (body["code"].as_str(), body["status"].as_u64()),
            (Some(code), Some(u64::from(status)))
        );
        assert_eq!(body["type"], format!("/docs/errors/{code}"));
        for field in ["title", "detail", "instance"] {
            assert!(!body[field].as_str().unwrap().is_empty(), "{field}");
        }
        assert!(!self.header("x-request-id").is_empty());
        assert_eq!(body["request_id"], self.header("x-request-id"));
        assert!(
            !self.text.contains("secret"),
            "internal text leaks: {}",
            self.text
        );
    }
}

impl TestGateway {
    pub async fn start() -> Self {
        let (poll_interval, drain) = (Duration::from_millis(50), Duration::ZERO);
        Self::with(GatewayConfig {
            poll_interval,
            drain,
            ..GatewayConfig::default()
        })
        .await
    }

    pub async fn with(config: GatewayConfig) -> Self {
        let store = TestStore::default();
        let stream = InProcessStream::default();
        let turns = Arc::new(RecordingTurns::default());
        let keys = SqliteStore::open_in_memory().await.unwrap();
        let ports = ports(&store, &keys, &stream, &turns);
        let (address, shutdown, serving) = listen(GatewayState::new(ports, config)).await;
        Self {
            address,
            store,
            keys,
            stream,
            turns,
            shutdown,
            serving,
            client: client(),
        }
    }

    /// Presents a secret in each further request.
    pub fn present(&mut self, secret: &str) {
        let bearer = HeaderValue::try_from(format!("Bearer {secret}")).unwrap();
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        let client = reqwest::Client::builder().default_headers(headers);
        self.client = client.build().unwrap();
    }

    pub fn url(&self, path: &str) -> String {
        let is_whole = path == "/"
            || path.starts_with("/api")
            || path.starts_with("/docs")
            || path.starts_with("/page")
            || path == "/about"
            || path == "/mcp"
            || path.ends_with('z');
        let prefix = if is_whole { "" } else { "/api/v1/agent" };
        format!("http://{}{prefix}{path}", self.address)
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method.parse().unwrap(), self.url(path))
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request("GET", path).send().await.unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request("POST", path).json(body).send().await.unwrap()).await
    }

    /// Sends a message by the chat endpoint; its answer is the stream.
    pub async fn chat(&self, body: &Value) -> Sse {
        let request = self.request("POST", "/chat").json(body);
        Sse::of(request.send().await.unwrap())
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request("PATCH", path).json(body).send().await.unwrap()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request("DELETE", path).send().await.unwrap()).await
    }
}

/// The connections of a gateway. API keys and sessions have a store of their own, which never fails.
pub fn ports(
    store: &TestStore,
    keys: &SqliteStore,
    stream: &InProcessStream,
    turns: &Arc<RecordingTurns>,
) -> Ports {
    let (store, keys) = (Arc::new(store.clone()), Arc::new(keys.clone()));
    Ports {
        consents: None,
        counts: None,
        deliveries: None,
        events: store.clone(),
        conversations: store.clone(),
        messages: store.clone(),
        executions: store.clone(),
        turn_results: store.clone(),
        failures: Arc::new(store.database.clone()),
        past_calls: store.clone(),
        usage: store.clone(),
        outside: store.clone(),
        left_out: Arc::new(store.database.clone()),
        results: store.clone(),
        blobs: BlobFiles::new(store, None, BlobRules::default()),
        keys: keys.clone(),
        owners: keys.clone(),
        audit: keys.clone(),
        tenants: keys,
        stream: Arc::new(stream.clone()),
        cancels: Arc::new(stream.clone()),
        turns: turns.clone(),
    }
}

/// Serves `state` on a free port.
pub async fn listen(
    state: GatewayState,
) -> (
    SocketAddr,
    CancellationToken,
    JoinHandle<std::io::Result<()>>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, state, shutdown.clone()));
    (address, shutdown, serving)
}

/// A client. Its TLS needs a crypto provider although nothing here speaks TLS.
pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

/// Server-sent events, as a client's library reads them.
pub struct Sse {
    pub headers: HeaderMap,
    events: EventStream<BoxStream<'static, reqwest::Result<Vec<u8>>>>,
}

impl Sse {
    pub fn of(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        let headers = response.headers().clone();
        let bytes = response
            .bytes_stream()
            .map(|chunk| chunk.map(|bytes| bytes.to_vec()))
            .boxed();
        Self {
            headers,
            events: bytes.eventsource(),
        }
    }

    /// The next event, whose `id` is the number in front of the time; `None` at the end.
    pub async fn next(&mut self) -> Option<SseEvent> {
        let next = tokio::time::timeout(Duration::from_mins(1), self.events.next()).await;
        let mut event = next.expect("no event came")?.expect("the stream broke");
        if let Some((number, saved)) = event.id.split_once('-') {
            assert!(i64::from_str_radix(saved, 16).is_ok(), "{}", event.id);
            event.id = number.to_owned();
        }
        Some(event)
    }

    /// The next `count` events as `type id`.
    pub async fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..count {
            let event = self.next().await.expect("the stream ended");
            names.push(
                format!("{} {}", event.event, event.id)
                    .trim_end()
                    .to_owned(),
            );
        }
        names
    }
}
