//! Records the stored histories anew, when `make histories` asks for the tests that are ignored.

use std::{fs, time::Duration};

use everturn_gateway::turns::TurnStarter as _;
use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    python::PythonTools,
    stack::Stack,
    wait,
};
use serde_json::{Value, json};
use temporalio_client::{WorkflowExecutionInfo, WorkflowFetchHistoryOptions};

use super::directory;

/// Long enough for another message to come meanwhile.
const SPOKEN: Duration = Duration::from_millis(200);

pub(super) fn script(request: &Request) -> Reply {
    let user = request.last("user");
    match (user.as_str(), request.results_since_user()) {
        ("use two tools", 0) => Reply::text("I need two tools.")
            .call("test_read", &json!({}))
            .call("test_once", &json!({})),
        ("use two inline tools", 0) => Reply::text("I need two tools.")
            .call("calculate", &json!({"expression": "21 * 2"}))
            .call("current_time", &json!({"time_zone": "Asia/Tokyo"})),
        ("wait", _) => Reply::text("As far as this").held(),
        ("fail once", _) if request.number == 1 => Reply::error(503, "overloaded"),
        _ => Reply::text("Done."),
    }
}

/// Writes the history of a run; the latest one when none is named.
pub(super) async fn record(stack: &Stack, name: &str, conversation: &str, run_id: Option<&str>) {
    record_workflow(stack, name, ids::workflow_id(conversation), run_id).await;
}

pub(super) async fn record_workflow(
    stack: &Stack,
    name: &str,
    workflow_id: String,
    run_id: Option<&str>,
) {
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

pub(super) async fn turn(stack: &Stack, name: &str, content: &str) {
    let (conversation, _) = stack.ask(content).await;
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(stack, name, &conversation, None).await;
}

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_histories_when_asked() {
    for (name, content) in [
        ("plain", "hello"),
        ("parallel-tools", "use two tools"),
        ("inline-tools", "use two inline tools"),
        ("retried-step", "fail once"),
    ] {
        let stack = Stack::new(Model::start(script).await).await;
        let _running = stack.start().await;
        turn(&stack, name, content).await;
    }
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    record_cancel(&stack, "cancel").await;

    let (conversation, _) = stack.ask("wait").await;
    stack.asked(2).await;
    stack
        .client()
        .submit(&conversation, "next", None)
        .await
        .unwrap();
    let first_run = stack.run_id(&conversation).await;
    no_longer_young().await;
    stack.model.release();
    stack.ended(&conversation, 2).await;
    record(&stack, "queued-messages", &conversation, Some(&first_run)).await;
}

/// Waits until the runs that have begun are too old to run another turn.
async fn no_longer_young() {
    tokio::time::sleep(Duration::from_millis(1100)).await;
}

/// Two turns of one run.
#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_a_young_run_when_asked() {
    let spoken = |_: &Request| Reply::spread(vec!["Do".into(), "ne.".into()], SPOKEN);
    let stack = Stack::new(Model::start(spoken).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack
        .client()
        .submit(&conversation, "next", None)
        .await
        .unwrap();
    stack.ended(&conversation, 2).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(&stack, "young-run", &conversation, None).await;
    assert!(
        stack.has_one_run(&conversation).await,
        "the machine is too slow to record it: record it again"
    );
}

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_histories_of_what_waits_or_was_lost_when_asked() {
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("wait").await;
    stack.asked(1).await;
    let waiting = stack
        .client()
        .submit(&conversation, "next", None)
        .await
        .unwrap();
    let first_run = stack.run_id(&conversation).await;
    stack
        .post(
            &format!("/conversations/{conversation}/cancel"),
            &json!({"message_id": waiting}),
        )
        .await;
    no_longer_young().await;
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

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_an_announced_cancel_when_asked() {
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    record_cancel(&stack, "announced-cancel").await;
}

/// Records a turn that is cancelled while the model speaks. It is the first one of the stack.
async fn record_cancel(stack: &Stack, name: &str) {
    let (conversation, _) = stack.ask("wait").await;
    stack.asked(1).await;
    stack.client().cancel(&conversation).await.unwrap();
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(stack, name, &conversation, None).await;
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

/// Records a turn with two approvals, of which one is denied.
async fn approve_and_deny(stack: &Stack, name: &str) {
    let (conversation, _) = stack.ask("approve").await;
    stack.saw(&conversation, "approval_requested").await;
    approve_and_deny_all(stack, &conversation).await;
    record(stack, name, &conversation, None).await;
}

/// Approves the first call that waits and denies the second one, and waits for the end of the turn.
async fn approve_and_deny_all(stack: &Stack, conversation: &str) {
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
        let path = format!("/conversations/{conversation}/approvals/{id}");
        wait::until("the turn takes the answer", || async {
            (stack.post(&path, &answer).await.0 == 200).then_some(())
        })
        .await;
    }
    stack.ended(conversation, 1).await;
    stack.workflow_status(conversation, "COMPLETED").await;
}

/// Answers to approvals that are told when they are stored, and a cancel that comes before its message.
#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_histories_of_answers_and_early_cancels_when_asked() {
    let agent = "tools = [{ name = \"test_once\", approval = \"always\" }]";
    let stack = Stack::with_agent(Model::start(script_for_someone).await, agent).await;
    let _running = stack.start().await;
    approve_and_deny(&stack, "stored-answers").await;

    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("wait").await;
    stack.asked(1).await;
    let path = format!("/conversations/{conversation}/cancel");
    stack.post(&path, &json!({"message_id": "second"})).await;
    let first_run = stack.run_id(&conversation).await;
    let message = json!({"message_id": "second", "content": "hello"});
    stack.signal_message(&conversation, &message).await;
    no_longer_young().await;
    stack.model.release();
    stack.ended(&conversation, 2).await;
    record(&stack, "early-cancel", &conversation, Some(&first_run)).await;
}

/// A turn that goes on in a new run while a call waits for an approval: the first run, and the next one.
#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_histories_of_a_long_wait_when_asked() {
    let agent = "tools = [{ name = \"test_once\", approval = \"always\" }]";
    let stack = Stack::with_agent(Model::start(script_for_someone).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("approve").await;
    stack.saw(&conversation, "approval_requested").await;
    let first_run = stack.run_id(&conversation).await;
    let turns = stack.turns().await;
    let mut number = 0;
    while stack.run_id(&conversation).await == first_run {
        number += 1;
        let other = format!("other-{number}");
        turns.signal(&conversation, &other).await.unwrap();
    }
    record(&stack, "long-wait", &conversation, Some(&first_run)).await;
    approve_and_deny_all(&stack, &conversation).await;
    record(&stack, "goes-on-among-tools", &conversation, None).await;
}

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_histories_of_what_waits_for_someone_when_asked() {
    let agent = "tools = [{ name = \"test_once\", approval = \"always\" }, \"open_file\"]\n\
                 [client_tools.open_file]\ndescription = \"Reads a file of the user.\"";
    let stack = Stack::with_agent(Model::start(script_for_someone).await, agent).await;
    let _running = stack.start().await;
    approve_and_deny(&stack, "approval").await;

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
#[ignore = "records histories: make histories"]
async fn record_a_history_of_remote_tools_when_asked() {
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("Two, and one that nobody runs.")
            .call("transfer", &json!({"amount": 5}))
            .call("transfer", &json!({"amount": 0}))
            .call("nobody", &json!({})),
        _ => Reply::text("Done."),
    };
    let tools = PythonTools::new(Model::start(script).await).await;
    let _running = tools.stack.start().await;
    let (conversation, _) = tools.stack.ask("go").await;
    let _python = tools.worker_for(2).await;
    tools.stack.ended(&conversation, 1).await;
    tools
        .stack
        .workflow_status(&conversation, "COMPLETED")
        .await;
    record(&tools.stack, "remote-tools", &conversation, None).await;
}

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_a_refused_save_when_asked() {
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
#[ignore = "records histories: make histories"]
async fn record_a_history_of_a_cut_answer_when_asked() {
    let script = |request: &Request| match request.number {
        1 => Reply::text("one two").at_limit(),
        _ => Reply::text("three."),
    };
    let agent = "tools = []\non_cut_reply = \"continue\"\n";
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    let _running = stack.start().await;
    turn(&stack, "cut-answer", "count").await;
}

/// The worker does not know the agent, so the turn is loaded by an ordinary activity.
#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_an_agent_elsewhere_when_asked() {
    let stack = Stack::new(Model::start(script).await).await;
    stack.configure("[worker]\nwait_for_peer = \"1s\"\n");
    let _old = stack.worker();
    stack.logged("worker", "worker is running").await;
    stack.configure("[agents.new]\nprovider = \"scripted\"\nmodel = \"scripted\"\n");
    let _gateway = stack.gateway().await;
    let client = stack.client();
    let conversation = client.create_conversation(Some("new")).await.unwrap();
    client.submit(&conversation, "hello", None).await.unwrap();
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "FAILED").await;
    record(&stack, "agent-elsewhere", &conversation, None).await;
}

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_steers_after_the_end_when_asked() {
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
    let first_run = stack.run_id(&conversation).await;
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
#[ignore = "records histories: make histories"]
async fn record_histories_of_sub_agents_when_asked() {
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
