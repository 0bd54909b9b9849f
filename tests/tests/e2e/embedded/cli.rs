//! Runs the `temporal` commands of docs/operate/commands.md, as written there, because operators use them.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_proto::ids;
use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
    temporal, wait,
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::embedded::approvals;

/// Returns the `temporal workflow …` commands of the page, each as one line.
fn commands_of_the_page() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operate/commands.md");
    let joined = std::fs::read_to_string(page).unwrap().replace("\\\n", " ");
    let commands = joined
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("temporal workflow "));
    commands.map(str::to_owned).collect()
}

fn is_about_approvals(command: &str) -> bool {
    command.contains("waiting") || command.contains("resolve_approval")
}

async fn run(stack: &Stack, command: &str) -> String {
    let binary = temporal::binary();
    let script = command.replacen("temporal ", &format!("{} ", binary.display()), 1);
    let output = Command::new("sh")
        .args(["-c", &script])
        .env("TEMPORAL_ADDRESS", stack.temporal.address())
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}\n{text}");
    text
}

#[tokio::test]
async fn the_commands_of_the_page_work_as_written() {
    let model = Model::start(|_: &Request| Reply::text("As far as this").held());
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let conversation = format!("demo-{}", uuid::Uuid::new_v4().simple());
    let mut seen = Vec::new();
    for command in commands_of_the_page()
        .into_iter()
        .filter(|command| !is_about_approvals(command))
    {
        // Other tests share the server, so this one has a conversation and a task queue of its own.
        let mine = command
            .replace("conversation-demo", &ids::workflow_id(&conversation))
            .replace(
                r#""conversation_id":"demo""#,
                &format!(r#""conversation_id":"{conversation}""#),
            )
            .replace(
                "--task-queue everturn",
                &format!("--task-queue {}", stack.task_queue),
            );
        let verb = command.split_whitespace().nth(2).unwrap().to_owned();
        match verb.as_str() {
            "list" => {
                wait::until("the workflow is listed", || async {
                    run(&stack, &mine)
                        .await
                        .contains(&conversation[..20])
                        .then_some(())
                })
                .await;
            }
            "query" => {
                stack.asked(1).await;
                assert!(run(&stack, &mine).await.contains("thinking"));
            }
            "cancel" => {
                run(&stack, &mine).await;
                stack.saw(&conversation, "cancelled").await;
                stack.model.release();
            }
            _ => drop(run(&stack, &mine).await),
        }
        seen.push(verb);
    }
    for verb in ["start", "list", "query", "signal", "cancel"] {
        assert!(
            seen.iter().any(|found| found == verb),
            "the page shows no `temporal workflow {verb}`"
        );
    }
    let events = stack.ended(&conversation, 2).await;
    let types: Vec<_> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    let expected =
        "user_message assistant_message cancelled user_message assistant_message complete";
    assert_eq!(
        types.join(" "),
        expected,
        "the cancel ended the first message only; the signalled one was answered"
    );
    let stored = stack.get(&format!("/conversations/{conversation}")).await;
    assert_eq!(
        stored["agent"], "default",
        "an unknown conversation is created"
    );
}

#[tokio::test]
async fn an_approval_is_found_and_answered_as_the_page_says() {
    let stack = Stack::with_agent(
        Model::start(approvals::one_call).await,
        approvals::THROUGH_ENGINE,
    )
    .await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = approvals::pending(&stack, &conversation, 1).await.remove(0);
    let commands: Vec<_> = commands_of_the_page()
        .into_iter()
        .filter(|command| is_about_approvals(command))
        .collect();
    let [list, signal] = &commands[..] else {
        panic!("{commands:?}")
    };
    wait::until("the workflow is listed", || async {
        run(&stack, list)
            .await
            .contains(&conversation[..20])
            .then_some(())
    })
    .await;
    let signal = signal.replace("conversation-demo", &ids::workflow_id(&conversation));
    let signal = signal.replace("exec_0123456789ab", call["execution_id"].as_str().unwrap());
    let hash = call["input_hash"].as_str().unwrap();
    let signal = signal.replace("0123456789abcdef0123456789abcdef", hash);
    run(&stack, &signal).await;
    assert_eq!(
        types(&stack.ended(&conversation, 1).await),
        approvals::APPROVED_TURN
    );
    assert_eq!(stack.effects().len(), 1);
}

async fn start(stack: &Stack, workflow_id: &str, input: &str) {
    let args = [
        "workflow",
        "start",
        "--type",
        "agent-execution",
        "--workflow-id",
        workflow_id,
    ];
    let args: Vec<_> = args
        .into_iter()
        .chain(["--task-queue", &stack.task_queue])
        .collect();
    let input = if input.is_empty() {
        vec![]
    } else {
        vec!["--input", input]
    };
    let output = stack.temporal.cli(&[args, input].concat()).await;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns the reason why a workflow failed.
async fn failure(stack: &Stack, workflow_id: &str) -> String {
    wait::until(&format!("{workflow_id} has failed"), || async {
        let history = stack.temporal.history(workflow_id).await;
        let last = history["events"].as_array()?.last()?.clone();
        let message = &last["workflowExecutionFailedEventAttributes"]["failure"]["message"];
        message.as_str().map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn wrong_input_fails_at_once_and_says_why() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Never.")).await).await;
    // Nobody else has the agent `nobody`.
    stack.configure("[worker]\nwait_for_peer = \"0s\"\n");
    let _running = stack.start().await;
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let conversation = format!("c-{unique}");
    let id = ids::workflow_id(&conversation);
    let message = json!({"content": "hello"});
    let turn = json!({"conversation_id": conversation, "message": message}).to_string();
    let unknown_agent =
        json!({"conversation_id": conversation, "agent": "nobody", "message": message}).to_string();
    let no_content =
        json!({"conversation_id": conversation, "message": {"message_id": "unknown"}}).to_string();
    let cases: Vec<(String, String, &str)> = vec![
        (
            format!("other-{unique}"),
            turn,
            "workflow id of this conversation must be",
        ),
        (
            id.clone(),
            json!({"conversation_id": conversation}).to_string(),
            "no message",
        ),
        (
            id.clone(),
            json!({"conversation_id": conversation, "message": {"content": " "}}).to_string(),
            "no message",
        ),
        (
            id.clone(),
            json!({"conversation_id": "a/b", "message": message}).to_string(),
            "`conversation_id` must have",
        ),
        (
            id.clone(),
            r#"{"conversation_id": 5}"#.to_owned(),
            "not a turn",
        ),
        (id.clone(), "[]".to_owned(), "not a turn"),
        (id.clone(), unknown_agent, "no agent `nobody`"),
        (id, no_content, "no message `unknown`"),
    ];
    for (workflow_id, input, expected) in cases {
        start(&stack, &workflow_id, &input).await;
        let message = failure(&stack, &workflow_id).await;
        assert!(message.contains(expected), "{input}: {message}");
    }
    assert_eq!(stack.model.requests().len(), 0);
    let types = stack.event_types(&conversation).await;
    assert_eq!(
        types,
        ["user_message", "error"],
        "the turn without an agent, and nothing of the others"
    );
}

#[tokio::test]
async fn a_signal_that_cannot_be_read_is_ignored() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Fine.").held()).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    let workflow_id = ids::workflow_id(&conversation);
    for (name, input) in [
        ("submit", "5"),
        ("submit", r#"{"content":""}"#),
        ("cancel", "[]"),
        ("unknown", "{}"),
    ] {
        let args = [
            "workflow",
            "signal",
            "--workflow-id",
            &workflow_id,
            "--name",
            name,
            "--input",
            input,
        ];
        assert!(stack.temporal.cli(&args).await.status.success());
    }
    stack.model.release();
    assert_eq!(stack.ended(&conversation, 1).await.len(), 3);
    stack.workflow_status(&conversation, "COMPLETED").await;
}

#[tokio::test]
async fn execution_status_answers_with_no_worker_alive() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Later.").held()).await).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, message) = stack.ask("hello").await;
    stack.asked(1).await;
    worker.kill().await;
    let status = stack
        .get(&format!("/conversations/{conversation}/execution-status"))
        .await;
    assert_eq!(
        status,
        json!({"is_running": true, "last_sequence": 1, "current_message_id": message, "model": null, "waiting": null})
    );
}

#[tokio::test]
async fn search_attributes_and_payloads_are_readable() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi.")).await).await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("hello").await;
    stack.ended(&conversation, 1).await;
    let described = stack.workflow_status(&conversation, "COMPLETED").await;
    let attributes =
        described["workflowExecutionInfo"]["searchAttributes"]["indexedFields"].to_string();
    for name in ["ConversationId", "AgentName", "TenantId", "TurnStatus"] {
        assert!(attributes.contains(name), "{attributes}");
    }
    let history = stack
        .temporal
        .history(&ids::workflow_id(&conversation))
        .await;
    let mut payloads = Vec::new();
    payload_texts(&history, &mut payloads);
    assert!(
        payloads
            .iter()
            .all(|text| serde_json::from_str::<Value>(text).is_ok()),
        "JSON only: {payloads:?}"
    );
    let submitted = json!({"message_id": message});
    let is_submitted =
        |text: &String| serde_json::from_str::<Value>(text).is_ok_and(|value| value == submitted);
    assert!(payloads.iter().any(is_submitted), "{payloads:?}");
    let output = json!({"message_id": message, "status": "completed", "steps": 1}).to_string();
    assert!(payloads.contains(&output), "{payloads:?}");
}

/// Returns the texts of all payloads in a history. The CLI prints them in base64.
fn payload_texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let (Some(data), Some(_)) = (
                fields.get("data").and_then(Value::as_str),
                fields.get("metadata"),
            ) {
                found.push(String::from_utf8(STANDARD.decode(data).unwrap()).unwrap());
            }
            fields
                .values()
                .for_each(|value| payload_texts(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| payload_texts(item, found)),
        _ => {}
    }
}
