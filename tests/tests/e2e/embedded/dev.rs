//! Tests of `everturn dev`, which is one process and its Temporal server.

use std::{
    fs::Permissions, future::Future, os::unix::fs::PermissionsExt, path::PathBuf, process::Stdio,
};

use everturn_client::{Frame, GatewayClient};
use everturn_tests::{
    events::assert_gap_free,
    model::{Model, Reply, Request},
    stack::{Process, Stack, binary, frames_until, ready},
    temporal, wait,
};
use everturn_worker::dev::TemporalServer;
use serde_json::Value;
use tokio::{net::TcpStream, process::Command};

/// A running `everturn dev` with a Temporal server of its own.
pub(crate) struct Dev {
    port: u16,
    temporal_port: u16,
    temporal_binary: PathBuf,
    process: Option<Process>,
}

impl Dev {
    /// Starts `everturn dev` on the stack's data and configuration.
    pub(crate) async fn start(stack: &Stack) -> Self {
        Self::new().start_again(stack).await
    }

    fn new() -> Self {
        Self {
            port: temporal::free_port(),
            temporal_port: temporal::free_port(),
            temporal_binary: temporal::binary(),
            process: None,
        }
    }

    /// Starts `everturn dev` again, on the same data and the same ports.
    pub(crate) async fn start_again(mut self, stack: &Stack) -> Self {
        self.spawn(stack);
        ready(&self.url()).await;
        self
    }

    fn spawn(&mut self, stack: &Stack) {
        let (listen, temporal_port) = (
            format!("127.0.0.1:{}", self.port),
            self.temporal_port.to_string(),
        );
        let args = [
            "dev",
            "--listen",
            &listen,
            "--temporal-port",
            &temporal_port,
            "--temporal-bin",
            self.temporal_binary.to_str().unwrap(),
        ];
        self.process = Some(stack.spawn(&args, "dev", &[]));
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn client(&self) -> GatewayClient {
        GatewayClient::new(&self.url()).unwrap()
    }

    pub(crate) async fn submit(&self, conversation: &str, content: &str) {
        self.client()
            .submit(conversation, content, None)
            .await
            .unwrap();
    }

    /// Follows a conversation while `act` runs, and returns the frames up to the first of type `last`.
    pub(crate) async fn frames_until<F: Future<Output = ()>>(
        &self,
        conversation: &str,
        act: impl FnOnce() -> F,
        last: &str,
    ) -> Vec<Frame> {
        let client = self.client();
        futures::future::join(
            frames_until(&client, conversation, 0, |frame| frame.event == last),
            act(),
        )
        .await
        .0
    }

    /// Has a turn in a new conversation, to its end.
    async fn complete_turn(&self) {
        let conversation = self.client().create_conversation(None).await.unwrap();
        let submit = || self.submit(&conversation, "hello");
        self.frames_until(&conversation, submit, "complete").await;
    }

    /// Kills it with `kill -9`, and waits until its Temporal server has ended, too.
    pub(crate) async fn kill(&mut self) {
        self.process.take().unwrap().kill().await;
        let address = ("127.0.0.1", self.temporal_port);
        wait::until("its Temporal server has ended", || async {
            let connection = TcpStream::connect(address).await;
            connection.is_err().then_some(())
        })
        .await;
    }

    pub(crate) async fn events(&self, conversation: &str) -> Vec<Value> {
        let url = format!(
            "{}/api/v1/agent/conversations/{conversation}/events?limit=1000",
            self.url()
        );
        let page: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
        page["events"].as_array().cloned().unwrap_or_default()
    }
}

/// Returns the command lines of all processes whose command line contains `text`.
fn processes_with(text: &str) -> Vec<String> {
    let of_process = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(text).then_some(line)
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| of_process(entry.ok()?))
        .collect()
}

#[tokio::test]
async fn once_prints_the_turn_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let (port, temporal_port) = (temporal::free_port(), temporal::free_port());
    let output = Command::new(binary())
        .args([
            "dev",
            "--once",
            "What is 21 * 2, and what time is it in Tokyo?",
        ])
        .args([
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--temporal-port",
            &temporal_port.to_string(),
        ])
        .arg("--temporal-bin")
        .arg(temporal::binary())
        .current_dir(directory.path())
        .env("EVERTURN_DATA_DIR", directory.path())
        .env_remove("OPENAI_API_KEY")
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("GEMINI_API_KEY")
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let types: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            words.next()?.parse::<u32>().ok()?;
            words.next()
        })
        .collect();
    let expected = "user_message thought act act observe observe assistant_message complete";
    assert_eq!(types.join(" "), expected, "{text}");
    assert!(text.contains("42"), "{text}");
    wait::until("no process is left", || async {
        processes_with(directory.path().to_str().unwrap())
            .is_empty()
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn once_fails_when_the_turn_fails() {
    let stack =
        Stack::new(Model::start(|_: &Request| Reply::error(401, "invalid_api_key")).await).await;
    let (listen, port) = (
        format!("127.0.0.1:{}", temporal::free_port()),
        temporal::free_port().to_string(),
    );
    let args = [
        "dev",
        "--once",
        "hello",
        "--listen",
        &listen,
        "--temporal-port",
        &port,
        "--temporal-bin",
    ];
    let output = stack
        .command(&args, &[])
        .arg(temporal::binary())
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("llm_unauthorized"), "{text}");
}

#[tokio::test]
async fn killed_and_started_again_it_finishes_the_turn() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("This try dies with the proc").held(),
        _ => Reply::text("This is the answer."),
    });
    let stack = Stack::new(model.await).await;
    let mut dev = Dev::start(&stack).await;
    let conversation = dev.client().create_conversation(None).await.unwrap();
    // Before the kill, the reader sees text of the first generation.
    let before = dev
        .frames_until(
            &conversation,
            || dev.submit(&conversation, "hello"),
            "text_delta",
        )
        .await;
    let first = before
        .iter()
        .find(|frame| frame.event == "text_start")
        .unwrap()
        .data["generation"]
        .as_u64()
        .unwrap();
    dev.kill().await;
    wait::until("its Temporal server is gone, too", || async {
        processes_with(stack.directory().to_str().unwrap())
            .is_empty()
            .then_some(())
    })
    .await;

    let dev = dev.start_again(&stack).await;
    let frames = dev
        .frames_until(&conversation, || async {}, "complete")
        .await;
    let events = dev.events(&conversation).await;
    assert_gap_free(&events);
    let types: Vec<_> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["user_message", "assistant_message", "complete"]);
    assert_eq!(events[1]["event_data"]["content"], "This is the answer.");
    let generations: Vec<_> = frames
        .iter()
        .filter(|f| f.event == "text_start")
        .map(|f| f.data["generation"].as_u64().unwrap())
        .collect();
    // Redis still has the text of the try that was killed. A newer generation always comes after it and replaces it.
    assert!(
        generations.is_sorted() && generations.last() > Some(&first),
        "{generations:?} after {first}"
    );
}

/// A Temporal server that, told to end, waits until a file is there.
const SLOW_SERVER: &str = r#"#!/bin/sh
"$SERVER" "$@" &
trap 'while ! [ -e may-end ]; do sleep 0.02; done; kill $!' TERM
wait
"#;

/// The server ends a moment after the process that was killed. Here the moment is long, as on a busy machine.
#[tokio::test]
async fn started_again_at_once_it_does_not_take_the_server_that_ends() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi.")).await).await;
    let mut dev = Dev::new();
    let server = temporal::binary();
    let program = SLOW_SERVER.replace("$SERVER", server.to_str().unwrap());
    dev.temporal_binary = stack.path("slow-server");
    std::fs::write(&dev.temporal_binary, program).unwrap();
    std::fs::set_permissions(&dev.temporal_binary, Permissions::from_mode(0o755)).unwrap();
    let mut dev = dev.start_again(&stack).await;
    dev.process.take().unwrap().kill().await;

    dev.spawn(&stack);
    let log = stack.path("dev.log");
    wait::until("the next process has begun", || async {
        let log = std::fs::read_to_string(&log).unwrap();
        (log.matches("everturn dev ·").count() == 2).then_some(())
    })
    .await;
    assert!(TemporalServer::is_running(dev.temporal_port).await);
    std::fs::write(stack.path("may-end"), "").unwrap();
    ready(&dev.url()).await;
    dev.complete_turn().await;
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("end of the last Temporal server"), "{log}");
}

#[tokio::test]
async fn chat_talks_to_a_running_gateway() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Good evening.")).await).await;
    let _running = stack.start().await;
    let output = stack
        .command(&["chat", "--url", &stack.url(), "hello"], &[])
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(text.matches("Good evening.").count(), 1, "{text}");
}

#[tokio::test]
async fn ctrl_c_leaves_no_process() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi.")).await).await;
    let mut dev = Dev::start(&stack).await;
    assert_eq!(dev.process.take().unwrap().terminate().await, Some(0));
    assert!(processes_with(stack.directory().to_str().unwrap()).is_empty());
}

#[tokio::test]
async fn a_second_one_is_refused_where_it_would_do_harm() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi.")).await).await;
    let dev = Dev::start(&stack).await;
    // A turn that ends shows that the worker polls.
    dev.complete_turn().await;
    let other_data = tempfile::tempdir().unwrap();
    let other_port = temporal::free_port();
    for (data, port, expected) in [
        (stack.directory(), other_port, "another everturn dev uses"),
        (
            other_data.path(),
            dev.temporal_port,
            "already serves the task queue",
        ),
    ] {
        let (listen, port) = (
            format!("127.0.0.1:{}", temporal::free_port()),
            port.to_string(),
        );
        let mut command = stack.command(
            &[
                "dev",
                "--once",
                "hello",
                "--listen",
                &listen,
                "--temporal-port",
                &port,
            ],
            &[],
        );
        let output = command
            .arg("--temporal-bin")
            .arg(temporal::binary())
            .arg("--data-dir")
            .arg(data)
            .output();
        let output = output.await.unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(stack.model.requests().len(), 1);
}

#[tokio::test]
async fn a_taken_port_is_said_in_one_sentence() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(binary())
        .args(["dev", "--listen", &listen, "--data-dir"])
        .arg(directory.path())
        .current_dir(directory.path())
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains(&listen) && text.contains("--listen"),
        "{text}"
    );
}

#[tokio::test]
async fn a_retried_step_is_superseded_on_the_wire() {
    // Gateway and worker are one process here, so deltas travel in memory.
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("The first try is cut").cut(),
        _ => Reply::text("The second try holds."),
    });
    let stack = Stack::new(model.await).await;
    let dev = Dev::start(&stack).await;
    let conversation = dev.client().create_conversation(None).await.unwrap();
    let frames = dev
        .frames_until(
            &conversation,
            || dev.submit(&conversation, "hello"),
            "complete",
        )
        .await;
    let mut text = String::new();
    let mut generations = Vec::new();
    for frame in &frames {
        match frame.event.as_str() {
            "text_start" => {
                generations.push(frame.data["generation"].as_u64().unwrap());
                frame.data["text"].as_str().unwrap().clone_into(&mut text);
            }
            "text_delta" => text += frame.data["text"].as_str().unwrap(),
            _ => {}
        }
    }
    assert_eq!(text, "The second try holds.", "{frames:#?}");
    assert!(
        generations.is_sorted() && generations.last() > generations.first(),
        "{generations:?}"
    );
    let answer = frames
        .iter()
        .find(|frame| frame.event == "assistant_message")
        .unwrap();
    assert_eq!(answer.data["content"], "The second try holds.");
}
