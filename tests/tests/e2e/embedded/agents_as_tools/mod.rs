//! Agents as tools for other programs: the official SDKs of MCP, and another Everturn, call `/mcp`, and get the same result
//! after `kill -9` of worker and gateway in the middle of a call.

mod another_everturn;

use std::{path::PathBuf, process::Stdio};

use everturn_tests::{
    mcp,
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

const ANSWER: &str = "It is 42.";

/// A model that calls a tool in its first step, and whose answer is held back.
async fn model() -> Model {
    Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("I look.").call("test_once", &serde_json::json!({"effect": true})),
        _ => Reply::text(ANSWER).held(),
    })
    .await
}

/// A program with an SDK, which is killed when this is dropped.
struct Program {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            _child: child,
            lines,
        }
    }

    /// The SDK for TypeScript.
    fn typescript(stack: &Stack, arguments: &[&str]) -> Self {
        let mut command = Command::new("node");
        command.arg(script("client.mjs")).arg(mcp::typescript_sdk());
        command
            .arg(format!("{}/mcp", stack.gateway_url(0)))
            .args(arguments);
        Self::start(command)
    }

    /// The SDK for Python.
    fn python(stack: &Stack, arguments: &[&str]) -> Self {
        let mut command = Command::new(mcp::python("python"));
        command.arg(script("client.py"));
        command
            .arg(format!("{}/mcp", stack.gateway_url(0)))
            .args(arguments);
        Self::start(command)
    }

    /// The value of the next line with this name; `None` when the program has ended.
    async fn next(&mut self, name: &str) -> Option<Value> {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            let mut said: Value = serde_json::from_str(&line).unwrap();
            if let Some(value) = said.get_mut(name) {
                return Some(value.take());
            }
        }
        None
    }

    async fn said(&mut self, name: &str) -> Value {
        let value = self.next(name).await;
        value.unwrap_or_else(|| panic!("the program did not say `{name}`"))
    }
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("mcp")
        .join(name)
}

/// The calls of a model that began a turn, and that continued one after the tool.
fn calls(model: &Model) -> (usize, usize) {
    let requests = model.requests();
    let first = requests
        .iter()
        .filter(|request| request.results_since_user() == 0);
    let first = first.count();
    (first, requests.len() - first)
}

/// Waits until a turn has run its tool, and the model holds back the answer.
async fn in_mid_call(stack: &Stack) {
    stack.asked(2).await;
}

/// Kills worker and gateway, and starts them again.
async fn crash(stack: &Stack, running: (Process, Process)) -> (Process, Process) {
    let (worker, gateway) = running;
    gateway.kill().await;
    worker.kill().await;
    stack.start().await
}

fn assert_answer(result: &Value) {
    assert_eq!(result["structuredContent"]["answer"], ANSWER, "{result}");
    assert_eq!(result["content"][0]["text"], ANSWER, "{result}");
    assert_ne!(result["isError"], true);
}

/// One conversation with one turn: nothing was begun twice.
async fn assert_paid_once(stack: &Stack) {
    let list = stack.get("/conversations").await;
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(stack.effects().len(), 1, "the tool of the agent ran once");
    let (first, _) = calls(&stack.model);
    assert_eq!(first, 1, "the answered step was paid once");
}

#[tokio::test]
async fn the_sdk_for_typescript_gets_its_result_over_a_crash() {
    let stack = Stack::new(model().await).await;
    let running = stack.start().await;
    let mut listing = Program::typescript(&stack, &["list"]);
    assert_eq!(listing.said("server").await["name"], "everturn");
    let tools = listing.said("tools").await;
    assert_eq!(tools[0]["name"], "default");
    assert_eq!(tools[0]["inputSchema"]["required"][0], "message");

    let mut client = Program::typescript(&stack, &["call", "What is it?", "k"]);
    client.said("progress").await;
    in_mid_call(&stack).await;
    let _running = crash(&stack, running).await;
    // The first call of the model for the answer was cut off. Its second call is answered.
    stack.asked(3).await;
    stack.model.release();
    let result = client.said("result").await;
    assert_answer(&result);
    assert_paid_once(&stack).await;

    let mut again = Program::typescript(&stack, &["call", "What is it?", "k"]);
    assert_eq!(
        again.said("result").await["structuredContent"],
        result["structuredContent"]
    );
    assert_paid_once(&stack).await;
    assert_eq!(calls(&stack.model).1, 2);
}

/// Begins a task, waits until the task is in the middle of a call, and returns the id of the task.
async fn begun_task(stack: &Stack) -> String {
    let mut client = Program::typescript(stack, &["begin", "What is it?", "k"]);
    let created = client.said("taskCreated").await;
    in_mid_call(stack).await;
    created["taskId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_task_outlives_its_client_the_worker_and_the_gateway() {
    let stack = Stack::new(model().await).await;
    let running = stack.start().await;
    let task = begun_task(&stack).await;
    let _running = crash(&stack, running).await;
    let mut client = Program::typescript(&stack, &["finish", &task]);
    assert_eq!(client.said("task").await["status"], "working");
    stack.asked(3).await;
    stack.model.release();
    assert_answer(&client.said("result").await);
    assert_eq!(client.said("task").await["status"], "completed");
    let tasks = client.said("tasks").await;
    assert_eq!(
        (tasks.as_array().unwrap().len(), &tasks[0]["taskId"]),
        (1, &Value::from(task.as_str()))
    );
    assert_paid_once(&stack).await;
}

#[tokio::test]
async fn a_task_is_cancelled() {
    let stack = Stack::new(model().await).await;
    let _running = stack.start().await;
    let task = begun_task(&stack).await;
    let mut client = Program::typescript(&stack, &["cancel", &task]);
    assert_eq!(client.said("task").await["status"], "cancelled");
    let mut client = Program::typescript(&stack, &["finish", &task]);
    assert_eq!(
        client.said("result").await["structuredContent"]["code"],
        "cancelled"
    );
    assert_eq!(client.said("task").await["status"], "cancelled");
}

#[tokio::test]
async fn the_sdk_for_python_repeats_its_call_after_a_crash() {
    let stack = Stack::new(model().await).await;
    let running = stack.start().await;
    let arguments = ["What is it?", "k"];
    let mut client = Program::python(&stack, &arguments);
    assert_eq!(client.said("version").await, "2026-07-28");
    assert_eq!(client.said("tools").await[0], "default");
    client.said("progress").await;
    in_mid_call(&stack).await;
    let _running = crash(&stack, running).await;
    assert!(
        client.next("error").await.is_some(),
        "this version continues no streams"
    );
    let mut client = Program::python(&stack, &arguments);
    client.said("version").await;
    stack.asked(3).await;
    stack.model.release();
    assert_answer(&client.said("result").await);
    assert_paid_once(&stack).await;
}
