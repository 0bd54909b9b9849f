//! Worker and gateway processes of one test, with a database, a configuration and a task queue of their own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
};

use everturn_proto::{ids, words::EventType};
use everturn_worker::client::{Frame, GatewayClient};
use futures::StreamExt;
use serde_json::Value;
use sqlx::{Row, sqlite::SqliteConnectOptions, sqlite::SqlitePool};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    backends::Backends,
    model::Model,
    postgres::Postgres,
    redis::Redis,
    temporal::{self, Temporal, free_port},
    wait,
};

/// Everything one test needs.
pub struct Stack {
    /// The model its agents use.
    pub model: Model,
    /// The server its turns run on.
    pub temporal: &'static Temporal,
    /// Task queue of its workers.
    pub task_queue: String,
    directory: TempDir,
    backends: Backends,
    /// One port for each gateway process.
    gateway_ports: Vec<u16>,
    /// Requests go to the gateways in turn.
    next_gateway: AtomicUsize,
}

/// The processes of one role, killed when dropped.
pub struct Process {
    children: Vec<Child>,
}

/// Keys of `[agents.default]` besides provider and model.
const DEFAULT_AGENT: &str = r#"
tools = ["calculate", "current_time", "work_plan", "test_once", "test_read", "test_idempotent"]
"#;

/// Keys of `[gateway]`: nothing balances between the gateways of a test.
const GATEWAY: &str = "drain = \"0s\"";

impl Stack {
    /// A stack with the default agent; nothing of it runs yet but the model and Temporal.
    pub async fn new(model: Model) -> Self {
        Self::with_agent(model, DEFAULT_AGENT).await
    }

    /// A stack with these keys in `[agents.default]`.
    pub async fn with_agent(model: Model, agent: &str) -> Self {
        let backends = Backends::shared().await;
        Self::on(backends, model, agent).await
    }

    /// A stack on a PostgreSQL and a Redis of its own, to be broken; `None` on the embedded backends.
    pub async fn breakable(model: Model) -> Option<Self> {
        let backends = Backends::own().await?;
        Some(Self::on(backends, model, DEFAULT_AGENT).await)
    }

    async fn on(backends: Backends, model: Model, agent: &str) -> Self {
        // HTTP clients of the test panic without a TLS backend, even for http.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let temporal = temporal::shared().await;
        let directory = tempfile::Builder::new()
            .prefix("everturn-test-")
            .tempdir()
            .unwrap();
        let config = format!(
            "[providers.scripted]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key_env = \"SCRIPTED_KEY\"\n\n\
             [agents.default]\nprovider = \"scripted\"\nmodel = \"scripted\"\ninstructions = \"Do as scripted.\"\n{agent}\n\n\
             [gateway]\n{GATEWAY}\n",
            model.base_url()
        );
        fs::write(directory.path().join("everturn.toml"), config).unwrap();
        let task_queue = format!("test-{}", uuid::Uuid::new_v4().simple());
        let gateway_ports = (0..backends.processes()).map(|_| free_port()).collect();
        let next_gateway = AtomicUsize::new(0);
        Self {
            model,
            temporal,
            task_queue,
            directory,
            backends,
            gateway_ports,
            next_gateway,
        }
    }

    /// Adds tables to the configuration, for what starts from now on.
    pub fn configure(&self, tables: &str) {
        let file = self.path("everturn.toml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{text}\n{tables}")).unwrap();
    }

    /// The same stack with this many gateways, each on a port of its own.
    #[must_use]
    pub fn with_gateways(mut self, count: usize) -> Self {
        self.gateway_ports = (0..count).map(|_| free_port()).collect();
        self
    }

    /// The PostgreSQL of a breakable stack.
    pub fn postgres(&self) -> &Postgres {
        self.backends.postgres().expect("a breakable stack")
    }

    /// The Redis of a breakable stack.
    pub fn redis(&self) -> &Redis {
        self.backends.redis().expect("a breakable stack")
    }

    /// A worker and a gateway, both up.
    pub async fn start(&self) -> (Process, Process) {
        let gateway = self.gateway().await;
        (self.worker(), gateway)
    }

    /// Starts a worker.
    pub fn worker(&self) -> Process {
        self.worker_with(&[])
    }

    /// Starts a worker with more environment.
    pub fn worker_with(&self, environment: &[(&str, &str)]) -> Process {
        let each =
            (0..self.backends.processes()).map(|_| self.spawn(&["worker"], "worker", environment));
        Process {
            children: each.flat_map(|process| process.children).collect(),
        }
    }

    /// Starts a worker of another binary, one of the examples.
    pub fn worker_of(&self, program: &str) -> Process {
        let spawn = |_| self.spawn_command(self.command_of(program, &["worker"], &[]), "worker");
        Process {
            children: (0..self.backends.processes()).map(spawn).collect(),
        }
    }

    /// Starts a worker that stops at a failpoint, and waits there to be killed.
    pub fn worker_stopping_at(&self, failpoint: &str) -> Process {
        let file = self.path(failpoint);
        self.worker_with(&[(
            "EVERTURN_FAILPOINT",
            &format!("{failpoint}={}", file.display()),
        )])
    }

    /// Waits until a worker has stopped at a failpoint.
    pub async fn reached(&self, failpoint: &str) {
        let file = self.path(failpoint);
        wait::until(&format!("{failpoint} is reached"), || async {
            file.exists().then_some(())
        })
        .await;
    }

    /// Lets a worker go on from the failpoint it has stopped at.
    pub fn pass(&self, failpoint: &str) {
        fs::write(self.path(&format!("{failpoint}.go")), "").unwrap();
    }

    /// Adds to the table `[gateway]` of processes started from now on.
    pub fn configure_gateway(&self, keys: &str) {
        let path = self.path("everturn.toml");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("{text}\n{keys}\n")).unwrap();
    }

    /// Starts every gateway and waits until all answer.
    pub async fn gateway(&self) -> Process {
        self.gateway_with(&[]).await
    }

    /// Starts every gateway with more environment, and waits until all answer.
    pub async fn gateway_with(&self, environment: &[(&str, &str)]) -> Process {
        let each = (0..self.gateway_ports.len()).map(|number| self.gateway_on(number, environment));
        let each = futures::future::join_all(each).await;
        Process {
            children: each
                .into_iter()
                .flat_map(|process| process.children)
                .collect(),
        }
    }

    /// Starts one of the gateways, with more environment, and waits until it answers.
    pub async fn gateway_on(&self, number: usize, environment: &[(&str, &str)]) -> Process {
        let listen = format!("127.0.0.1:{}", self.gateway_port(number));
        let process = self.spawn(&["gateway", "--listen", &listen], "gateway", environment);
        ready(&self.gateway_url(number)).await;
        process
    }

    /// Starts any role of the binary.
    pub fn spawn(&self, args: &[&str], log: &str, environment: &[(&str, &str)]) -> Process {
        Process {
            children: vec![self.spawn_command(self.command(args, environment), log)],
        }
    }

    fn spawn_command(&self, mut command: Command, log: &str) -> Child {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path(&format!("{log}.log")))
            .unwrap();
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// A command of the binary in this stack's surroundings.
    pub fn command(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        self.command_of("everturn", args, environment)
    }

    fn command_of(&self, program: &str, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(built(program));
        command
            .args(args)
            .current_dir(self.directory.path())
            .env("EVERTURN_DATA_DIR", self.directory.path())
            .env("EVERTURN_TASK_QUEUE", &self.task_queue)
            .env("EVERTURN_TEST_TOOLS", self.effects_file())
            .env("SCRIPTED_KEY", "no secret")
            .env("TEMPORAL_ADDRESS", self.temporal.address())
            .env_remove("EVERTURN_FAILPOINT")
            .envs(self.backends.environment())
            .envs(environment.iter().copied());
        command
    }

    /// A file of the stack.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory of the stack.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Base URL of a gateway, each time of the next one.
    pub fn url(&self) -> String {
        self.gateway_url(
            self.next_gateway.fetch_add(1, Ordering::Relaxed) % self.gateway_ports.len(),
        )
    }

    /// Base URL of one of the gateways.
    pub fn gateway_url(&self, number: usize) -> String {
        format!("http://127.0.0.1:{}", self.gateway_port(number))
    }

    /// Port of one of the gateways on 127.0.0.1.
    pub fn gateway_port(&self, number: usize) -> u16 {
        self.gateway_ports[number]
    }

    /// A client of the gateway.
    pub fn client(&self) -> GatewayClient {
        GatewayClient::new(&self.url()).unwrap()
    }

    /// Creates a conversation with one message, and returns both ids.
    pub async fn ask(&self, content: &str) -> (String, String) {
        let client = self.client();
        let conversation_id = client.create_conversation(None).await.unwrap();
        let message_id = client
            .submit(&conversation_id, content, None)
            .await
            .unwrap();
        (conversation_id, message_id)
    }

    /// Reads a URL of the gateway's API.
    pub async fn get(&self, path: &str) -> Value {
        let url = format!("{}/api/v1/agent{path}", self.url());
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }

    /// Posts to the gateway's API: status and body.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}/api/v1/agent{path}", self.url());
        let answer = reqwest::Client::new()
            .post(url)
            .json(body)
            .send()
            .await
            .unwrap();
        (
            answer.status().as_u16(),
            answer.json().await.unwrap_or_default(),
        )
    }

    /// All events of a conversation.
    pub async fn events(&self, conversation_id: &str) -> Vec<Value> {
        let page = self
            .get(&format!(
                "/conversations/{conversation_id}/events?limit=1000"
            ))
            .await;
        page["events"].as_array().cloned().unwrap_or_default()
    }

    /// Types of all events of a conversation.
    pub async fn event_types(&self, conversation_id: &str) -> Vec<String> {
        let events = self.events(conversation_id).await;
        events
            .iter()
            .map(|event| event["event_type"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until this many turns of the conversation have ended, not counting sub-agents, and returns its events.
    pub async fn ended(&self, conversation_id: &str, turns: usize) -> Vec<Value> {
        let what = format!("{turns} turns of {conversation_id} have ended");
        let events = wait::until(&what, || async {
            let events = self.events(conversation_id).await;
            let ends = events.iter().filter(|event| {
                EventType::from(event["event_type"].as_str().unwrap()).ends_turn(
                    conversation_id,
                    event["message_id"].as_str().unwrap(),
                    event["event_data"]["agent_execution_id"].as_str(),
                )
            });
            (ends.count() >= turns).then_some(events)
        })
        .await;
        assert_gap_free(&events);
        events
    }

    /// Waits until the conversation has an event of this type.
    pub async fn saw(&self, conversation_id: &str, event_type: &str) {
        wait::until(&format!("{conversation_id} has {event_type}"), || async {
            self.event_types(conversation_id)
                .await
                .iter()
                .any(|found| found == event_type)
                .then_some(())
        })
        .await;
    }

    /// Waits until the model was asked this often.
    pub async fn asked(&self, times: usize) {
        wait::until(&format!("the model was asked {times} times"), || async {
            (self.model.requests().len() >= times).then_some(())
        })
        .await;
    }

    /// Waits until the workflow of a conversation has this status, and returns its description.
    pub async fn workflow_status(&self, conversation_id: &str, status: &str) -> Value {
        let workflow_id = ids::workflow_id(conversation_id);
        wait::until(&format!("{workflow_id} is {status}"), || async {
            let described = self
                .temporal
                .json(&["workflow", "describe", "--workflow-id", &workflow_id])
                .await;
            let found = described["workflowExecutionInfo"]["status"]
                .as_str()
                .unwrap_or_default();
            found.ends_with(status).then_some(described)
        })
        .await
    }

    /// Frames of the event stream until one matches.
    pub async fn frames_until(
        &self,
        conversation_id: &str,
        cursor: u32,
        is_last: impl Fn(&Frame) -> bool,
    ) -> Vec<Frame> {
        frames_until(&self.client(), conversation_id, cursor, is_last).await
    }

    /// Lines of the file to which test tools append their effects.
    pub fn effects(&self) -> Vec<String> {
        fs::read_to_string(self.effects_file())
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Rows in each table of the store that belongs to the schema.
    pub async fn rows(&self) -> Vec<(String, i64)> {
        if let Some(rows) = self.backends.rows().await {
            return rows;
        }
        let options = SqliteConnectOptions::new()
            .filename(self.path("everturn.db"))
            .read_only(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        let tables = sqlx::query("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '_sqlx%' ORDER BY name")
            .fetch_all(&pool)
            .await
            .unwrap();
        let mut rows = Vec::new();
        for table in tables {
            let name: String = table.get(0);
            let count = sqlx::query(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {name}")));
            rows.push((name, count.fetch_one(&pool).await.unwrap().get(0)));
        }
        rows
    }

    fn effects_file(&self) -> PathBuf {
        self.path("effects")
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for log in ["worker.log", "gateway.log", "dev.log"] {
                let text = fs::read_to_string(self.path(log)).unwrap_or_default();
                let from = text.char_indices().rev().nth(4000).map_or(0, |(at, _)| at);
                eprintln!("---- end of {log} ----\n{}", &text[from..]);
            }
        }
    }
}

impl Process {
    /// The ids of its processes.
    pub fn ids(&self) -> Vec<u32> {
        self.children.iter().filter_map(Child::id).collect()
    }

    /// kill -9.
    pub async fn kill(mut self) {
        for child in &mut self.children {
            child.kill().await.unwrap();
        }
    }

    /// The most memory that one of the processes has held at a time.
    pub fn peak_memory_bytes(&self) -> u64 {
        let peak = |child: &Child| {
            let status =
                fs::read_to_string(format!("/proc/{}/status", child.id().unwrap())).unwrap();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:"))
                .unwrap();
            line.split_whitespace()
                .next()
                .unwrap()
                .parse::<u64>()
                .unwrap()
                * 1024
        };
        self.children.iter().map(peak).max().unwrap()
    }

    /// SIGTERM; returns the exit code, the worst one of several processes.
    pub async fn terminate(mut self) -> Option<i32> {
        for child in &self.children {
            let id = child.id().unwrap().to_string();
            assert!(
                Command::new("kill")
                    .args(["-TERM", &id])
                    .status()
                    .await
                    .unwrap()
                    .success()
            );
        }
        let mut worst = Some(0);
        for child in &mut self.children {
            let code = child.wait().await.unwrap().code();
            worst = if code == Some(0) { worst } else { code };
        }
        worst
    }
}

/// The binary under test.
pub fn binary() -> PathBuf {
    built("everturn")
}

/// A binary of the workspace: in the directory of this one, or above it as tests are below (cargo build made it).
fn built(program: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let found = this
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!("{program} is missing: run `make test`, or `cargo build --workspace` first")
    })
}

/// Waits until the gateway at `url` answers.
pub async fn ready(url: &str) {
    let url = format!("{url}/readyz");
    wait::until("the gateway is ready", || async {
        reqwest::get(&url)
            .await
            .ok()
            .filter(|answer| answer.status().is_success())
            .map(drop)
    })
    .await;
}

/// Frames of an event stream until one matches.
pub async fn frames_until(
    client: &GatewayClient,
    conversation_id: &str,
    cursor: u32,
    is_last: impl Fn(&Frame) -> bool,
) -> Vec<Frame> {
    let mut frames = std::pin::pin!(client.follow(conversation_id, cursor));
    let mut seen = Vec::new();
    let collect = async {
        while let Some(frame) = frames.next().await {
            seen.push(frame.clone());
            if is_last(&frame) {
                break;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), collect)
        .await
        .expect("the stream stays silent");
    seen
}

/// Sequence numbers are 1..n, and nothing is there twice.
pub fn assert_gap_free(events: &[Value]) {
    let numbers: Vec<_> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (1..=events.len() as u64).collect::<Vec<_>>(),
        "{events:#?}"
    );
    let mut ids: Vec<_> = events
        .iter()
        .map(|event| event["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), events.len(), "an event is there twice");
    for act in events.iter().filter(|event| event["event_type"] == "act") {
        let id = &act["event_data"]["execution_id"];
        let is_its = |event: &&Value| {
            event["event_type"] == "observe" && &event["event_data"]["execution_id"] == id
        };
        let is_last_turn_open =
            !EventType::from(events.last().unwrap()["event_type"].as_str().unwrap())
                .ends_agent_execution();
        let observes = events.iter().filter(is_its).count();
        assert!(
            observes == 1 || (observes == 0 && is_last_turn_open),
            "{observes} observes of {id}"
        );
    }
}
