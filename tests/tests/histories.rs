//! Stored histories replay (invariant 1, pure workflow): a worker of this version can go on with turns of every version
//! before.
//!
//! `make histories` records them anew from real turns; see `tests/histories/README.md`.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    python::PythonTools,
    stack::Stack,
};
use everturn_workflows::AgentExecution;
use serde_json::{Value, json};
use temporalio_client::{WorkflowExecutionInfo, WorkflowFetchHistoryOptions, WorkflowHistory};
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("histories")
}

fn stored() -> Vec<(String, Value)> {
    let mut files: Vec<_> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    let read = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        (
            name,
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap(),
        )
    };
    files.into_iter().map(read).collect()
}

/// Replays a history as the SDK writes it.
async fn replay(history: &Value) -> Result<(), String> {
    let history = WorkflowHistory::from_json(history.to_string().as_bytes())
        .map_err(|error| error.to_string())?;
    let options = WorkflowReplayerOptions::new()
        .register_workflow::<AgentExecution>()
        .unwrap()
        .build();
    let replayer = WorkflowReplayer::new(options).unwrap();
    replayer
        .replay_workflow(history)
        .await
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn stored_histories_replay() {
    let histories = stored();
    let names: Vec<_> = histories.iter().map(|(name, _)| name.as_str()).collect();
    let needed = [
        "plain",
        "parallel-tools",
        "cancel",
        "queued-messages",
        "retried-step",
        "cancel-waiting",
        "resumed",
        "refused-save",
        "steers-after-end",
        "taken-over",
    ];
    let of_tools = [
        "approval",
        "approval-cancelled",
        "client-tool",
        "remote-tools",
        "delegating",
        "sub-agent",
    ];
    for needed in needed.into_iter().chain(of_tools) {
        assert!(
            names.iter().any(|name| name.starts_with(needed)),
            "no stored history of {needed}"
        );
    }
    for (name, history) in &histories {
        replay(history).await.unwrap_or_else(|error| {
            panic!(
                "{name} does not replay: {error}\nA change of the workflow needs a patch marker; see CONTRIBUTING.md."
            )
        });
    }
}

/// The tests above would notice: with the same histories, but what the code asked for in another order.
#[tokio::test]
async fn another_order_of_activities_does_not_replay() {
    let (_, mut history) = stored()
        .into_iter()
        .find(|(name, _)| name.starts_with("parallel-tools"))
        .unwrap();
    let mut tools = scheduled(&mut history, "tool_execution_activity");
    assert_eq!(tools.len(), 2);
    let (first, second) = (
        tools[0]["activity_id"].take(),
        tools[1]["activity_id"].take(),
    );
    tools[0]["activity_id"] = second;
    tools[1]["activity_id"] = first;
    let error = replay(&history).await.unwrap_err();
    assert!(error.contains("nondeterministic"), "{error}");

    let (_, mut history) = stored()
        .into_iter()
        .find(|(name, _)| name.starts_with("plain"))
        .unwrap();
    scheduled(&mut history, "llm_thinking_activity")[0]["activity_type"]["name"] =
        "tool_execution_activity".into();
    let error = replay(&history).await.unwrap_err();
    assert!(error.contains("nondeterministic"), "{error}");
}

/// The attributes of the events that scheduled this activity.
fn scheduled<'a>(history: &'a mut Value, activity: &str) -> Vec<&'a mut Value> {
    let events = history["events"].as_array_mut().unwrap().iter_mut();
    let attributes = events
        .filter_map(|event| event["attributes"].get_mut("ActivityTaskScheduledEventAttributes"));
    attributes
        .filter(|attributes| attributes["activity_type"]["name"] == activity)
        .collect()
}

fn script(request: &Request) -> Reply {
    let user = request.last("user");
    match (user.as_str(), request.results_since_user()) {
        ("use two tools", 0) => Reply::text("I need two tools.")
            .call("calculate", &json!({"expression": "21 * 2"}))
            .call("current_time", &json!({"time_zone": "Asia/Tokyo"})),
        ("wait", _) => Reply::text("As far as this").held(),
        ("fail once", _) if request.number == 1 => Reply::error(503, "overloaded"),
        _ => Reply::text("Done."),
    }
}

/// Writes the history of a run; the latest one when none is named.
async fn record(stack: &Stack, name: &str, conversation: &str, run_id: Option<&str>) {
    record_workflow(stack, name, ids::workflow_id(conversation), run_id).await;
}

async fn record_workflow(stack: &Stack, name: &str, workflow_id: String, run_id: Option<&str>) {
    let info = WorkflowExecutionInfo::builder()
        .namespace("default".to_owned())
        .workflow_id(workflow_id)
        .maybe_run_id(run_id.map(str::to_owned))
        .build();
    let handle = info.bind_untyped(stack.temporal.client().await);
    let json = handle
        .fetch_history(WorkflowFetchHistoryOptions::default())
        .to_json()
        .await
        .unwrap();
    let mut history = serde_json::from_slice(&json).unwrap();
    without_identities(&mut history);
    let file = directory().join(format!("{name}-{}.json", env!("CARGO_PKG_VERSION")));
    fs::write(file, serde_json::to_string(&history).unwrap() + "\n").unwrap();
}

/// The name of the machine that recorded it is nobody's business.
fn without_identities(value: &mut Value) {
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(name, value)| match name.as_str() {
                "identity" => *value = "worker".into(),
                // Has paths of the machine.
                "stackTrace" => *value = "".into(),
                _ => without_identities(value),
            }),
        Value::Array(items) => items.iter_mut().for_each(without_identities),
        // A sticky queue is named `<pid>@<machine>-…`.
        Value::String(text)
            if text
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .starts_with('@') =>
        {
            *value = "worker-sticky".into();
        }
        _ => {}
    }
}

async fn turn(stack: &Stack, name: &str, content: &str) {
    let (conversation, _) = stack.ask(content).await;
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(stack, name, &conversation, None).await;
}

#[tokio::test]
async fn record_histories_when_asked() {
    if std::env::var_os("EVERTURN_RECORD_HISTORIES").is_none() {
        return;
    }
    for (name, content) in [
        ("plain", "hello"),
        ("parallel-tools", "use two tools"),
        ("retried-step", "fail once"),
    ] {
        let stack = Stack::new(Model::start(script).await).await;
        let _running = stack.start().await;
        turn(&stack, name, content).await;
    }
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("wait").await;
    stack.asked(1).await;
    stack.client().cancel(&conversation).await.unwrap();
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(&stack, "cancel", &conversation, None).await;

    let (conversation, _) = stack.ask("wait").await;
    stack.asked(2).await;
    stack
        .client()
        .submit(&conversation, "next", None)
        .await
        .unwrap();
    let described = stack.workflow_status(&conversation, "RUNNING").await;
    let first_run = described["workflowExecutionInfo"]["execution"]["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    stack.model.release();
    stack.ended(&conversation, 2).await;
    record(&stack, "queued-messages", &conversation, Some(&first_run)).await;
}

#[tokio::test]
async fn record_histories_of_what_waits_or_was_lost_when_asked() {
    if std::env::var_os("EVERTURN_RECORD_HISTORIES").is_none() {
        return;
    }
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("wait").await;
    stack.asked(1).await;
    let waiting = stack
        .client()
        .submit(&conversation, "next", None)
        .await
        .unwrap();
    let described = stack.workflow_status(&conversation, "RUNNING").await;
    let first_run = described["workflowExecutionInfo"]["execution"]["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    stack
        .post(
            &format!("/conversations/{conversation}/cancel"),
            &json!({"message_id": waiting}),
        )
        .await;
    stack.model.release();
    stack.ended(&conversation, 2).await;
    record(&stack, "cancel-waiting", &conversation, Some(&first_run)).await;

    let stack = Stack::new(Model::start(script_that_hangs_once).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("use two tools").await;
    stack.asked(2).await;
    stack.terminate(&conversation).await;
    stack
        .post(&format!("/conversations/{conversation}/resume"), &json!({}))
        .await;
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(&stack, "taken-over", &conversation, None).await;
}

/// Two calls that a person must approve, or one that the client runs.
fn script_for_someone(request: &Request) -> Reply {
    match (request.last("user").as_str(), request.results_since_user()) {
        ("approve", 0) => Reply::text("May I?")
            .call("test_once", &json!({}))
            .call("test_once", &json!({"effect": true})),
        ("client", 0) => Reply::text("Your client does this.").call("open_file", &json!({})),
        _ => Reply::text("Done."),
    }
}

#[tokio::test]
async fn record_histories_of_what_waits_for_someone_when_asked() {
    if std::env::var_os("EVERTURN_RECORD_HISTORIES").is_none() {
        return;
    }
    let agent = "tools = [{ name = \"test_once\", approval = \"always\" }, \"open_file\"]\n\
                 [client_tools.open_file]\ndescription = \"Reads a file of the user.\"";
    let stack = Stack::with_agent(Model::start(script_for_someone).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("approve").await;
    stack.saw(&conversation, "approval_requested").await;
    let approvals = stack
        .get(&format!("/conversations/{conversation}/approvals"))
        .await;
    for (call, decision) in approvals["approvals"]
        .as_array()
        .unwrap()
        .iter()
        .zip(["approve", "deny"])
    {
        let id = call["execution_id"].as_str().unwrap();
        let answer = json!({"decision": decision, "input_hash": call["input_hash"]});
        stack
            .post(
                &format!("/conversations/{conversation}/approvals/{id}"),
                &answer,
            )
            .await;
    }
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(&stack, "approval", &conversation, None).await;

    let (conversation, _) = stack.ask("approve").await;
    stack.saw(&conversation, "approval_requested").await;
    stack.client().cancel(&conversation).await.unwrap();
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(&stack, "approval-cancelled", &conversation, None).await;

    let (conversation, _) = stack.ask("client").await;
    stack.saw(&conversation, "client_tool_requested").await;
    let waiting = stack
        .get(&format!("/conversations/{conversation}/client-tools"))
        .await;
    let id = waiting["client_tools"][0]["execution_id"].as_str().unwrap();
    stack
        .post(
            &format!("/conversations/{conversation}/client-tools/{id}"),
            &json!({"result": "a text"}),
        )
        .await;
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(&stack, "client-tool", &conversation, None).await;
}

#[tokio::test]
async fn record_a_history_of_remote_tools_when_asked() {
    if std::env::var_os("EVERTURN_RECORD_HISTORIES").is_none() {
        return;
    }
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("Two, and one that nobody runs.")
            .call("transfer", &json!({"amount": 5}))
            .call("transfer", &json!({"amount": 0}))
            .call("nobody", &json!({})),
        _ => Reply::text("Done."),
    };
    let tools = PythonTools::new(Model::start(script).await).await;
    let _running = tools.stack.start().await;
    let _python = tools.worker();
    let (conversation, _) = tools.stack.ask("go").await;
    tools.stack.ended(&conversation, 1).await;
    tools
        .stack
        .workflow_status(&conversation, "COMPLETED")
        .await;
    record(&tools.stack, "remote-tools", &conversation, None).await;
}

#[tokio::test]
async fn record_a_history_of_a_refused_save_when_asked() {
    if std::env::var_os("EVERTURN_RECORD_HISTORIES").is_none() {
        return;
    }
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    stack
        .refuse_events(&conversation, "NEW.batch_key LIKE '%/thought'")
        .await;
    let client = stack.client();
    client
        .submit(&conversation, "use two tools", None)
        .await
        .unwrap();
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "FAILED").await;
    record(&stack, "refused-save", &conversation, None).await;
}

#[tokio::test]
async fn record_a_history_of_steers_after_the_end_when_asked() {
    if std::env::var_os("EVERTURN_RECORD_HISTORIES").is_none() {
        return;
    }
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("I look.")
            .call("calculate", &json!({"expression": "1 + 1"}))
            .held(),
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_stopping_at("save.steer.before");
    let (conversation, message) = stack.ask("wait").await;
    stack.asked(1).await;
    let described = stack.workflow_status(&conversation, "RUNNING").await;
    let first_run = described["workflowExecutionInfo"]["execution"]["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    let steer = json!({"content": "and this", "on_busy": "steer"});
    stack.send(&conversation, &steer).await;
    stack.model.release();
    stack.reached("save.steer.before").await;
    stack.fail_turn(&conversation, &message).await;
    stack.pass("save.steer.before");
    stack.ended(&conversation, 2).await;
    record(&stack, "steers-after-end", &conversation, Some(&first_run)).await;
}

fn script_that_hangs_once(request: &Request) -> Reply {
    if request.number == 2 {
        Reply::text("As far as this").held()
    } else {
        script(request)
    }
}

#[tokio::test]
async fn record_histories_of_sub_agents_when_asked() {
    if std::env::var_os("EVERTURN_RECORD_HISTORIES").is_none() {
        return;
    }
    let model = Model::start(|request: &Request| {
        match (
            request.last("system").as_str(),
            request.results_since_user(),
        ) {
            ("helper", 0) => {
                Reply::text("I calculate.").call("calculate", &json!({"expression": "21 * 2"}))
            }
            ("helper", _) => Reply::text("It is 42."),
            (_, 0) => ["one", "two"]
                .into_iter()
                .fold(Reply::text("I share this out."), |reply, task| {
                    reply.call("delegate", &json!({"agent": "helper", "task": task}))
                }),
            _ => Reply::text("Done."),
        }
    });
    let agents = "delegates = [\"helper\"]\nturn_timeout = \"1h\"\n[agents.helper]\nprovider = \"scripted\"\n\
                  model = \"scripted\"\ninstructions = \"helper\"\ntools = [\"calculate\"]";
    let stack = Stack::with_agent(model.await, agents).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("share").await;
    let events = stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(&stack, "delegating", &conversation, None).await;
    let start = events
        .iter()
        .find(|event| event["event_type"] == "sub_agent_start")
        .unwrap();
    let execution_id = start["event_data"]["execution_id"].as_str().unwrap();
    let workflow_id = ids::sub_agent_workflow_id(&conversation, execution_id);
    record_workflow(&stack, "sub-agent", workflow_id, None).await;
}
