//! Hooks that run after a turn: nothing waits for them, and they are not lost.

use everturn_tests::{
    events::{contents, count, types},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::json;

/// An agent with this hook, which runs after its turns.
pub(super) fn agent(hook: &str) -> String {
    format!(
        "llm_timeout = \"1h\"\ntools = [\"calculate\"]\n[agents.default.hooks]\nafter_turn = [{hook}]\n"
    )
}

/// Runs until the test lets it go.
pub(super) const KEEPS: &str =
    r#"{ name = "test_once", timeout = "10m", input = { effect = true } }"#;

pub(super) async fn stack(hook: &str) -> Stack {
    let script = |request: &Request| Reply::text(&format!("You said {}.", request.last("user")));
    Stack::with_agent(Model::start(script).await, &agent(hook)).await
}

/// The workflows of hooks after the turns of a conversation, with this status (`Completed`).
async fn workflows(stack: &Stack, conversation: &str, status: &str) -> usize {
    let query = format!(
        "WorkflowType = 'after-turn' AND ExecutionStatus = '{status}' AND WorkflowId STARTS_WITH 'conversation-{conversation}/'"
    );
    stack.temporal.list(&query).await.len()
}

/// Waits until so many of them have this status.
async fn are(stack: &Stack, conversation: &str, status: &str, count: usize) {
    wait::until(
        &format!("{count} hooks of {conversation} are {status}"),
        || async { (workflows(stack, conversation, status).await == count).then_some(()) },
    )
    .await;
}

/// Waits until so many of them have completed.
pub(super) async fn completed(stack: &Stack, conversation: &str, count: usize) {
    are(stack, conversation, "Completed", count).await;
}

#[tokio::test]
async fn a_hook_that_never_ends_holds_up_neither_its_turn_nor_the_next() {
    let stack = stack(KEEPS).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "one").await;
    stack.ended(&conversation, 1).await;
    stack.held(&conversation, 1).await;
    let content = |text: &str| json!({"content": text});
    stack.send(&conversation, &content("two")).await;
    stack.send(&conversation, &content("three")).await;
    let events = stack.ended(&conversation, 3).await;
    assert_eq!(
        contents(&events, "assistant_message"),
        ["You said one.", "You said two.", "You said three."]
    );
    // A reader sees nothing of them: a turn has ended when it has ended.
    assert_eq!(count(&events, "act"), 0, "{}", types(&events));
    stack.held(&conversation, 3).await;
    are(&stack, &conversation, "Running", 3).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    stack.let_go(&conversation);
    completed(&stack, &conversation, 3).await;
    assert_eq!(stack.effects().len(), 3);
    assert_eq!(stack.event_types(&conversation).await.len(), events.len());
}

/// The hook is a tool of the worker's own whose input is what it was told.
#[tokio::test]
async fn a_hook_is_told_what_was_said() {
    let hook =
        r#"{ name = "test_read", input = { fail = "{hook}/{tenant_id}/{message}/{answer}" } }"#;
    let stack = stack(hook).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.ended(&conversation, 1).await;
    completed(&stack, &conversation, 1).await;
    let kept = stack.dump().await;
    assert!(
        kept.contains("after_turn/default/hello/You said hello."),
        "{kept}"
    );
    // It failed, and its workflow says so.
    let query = format!("WorkflowId STARTS_WITH 'conversation-{conversation}/after-'");
    let list = stack.temporal.list(&query).await;
    let id = list[0]["execution"]["workflowId"].as_str().unwrap();
    let shown = stack
        .temporal
        .json(&["workflow", "result", "--workflow-id", id])
        .await;
    assert_eq!(shown["result"], json!({"hooks": 1}), "{shown}");
}

#[tokio::test]
async fn only_a_turn_that_has_completed_has_hooks_after_it() {
    // Two messages of a user in a row are one message of the request.
    let script = |request: &Request| match request.last("user").lines().last() {
        Some("fail") => Reply::error(400, "bad_request"),
        Some("wait") => Reply::text("Waiting.").held(),
        _ => Reply::text("Done."),
    };
    let stack = Stack::with_agent(Model::start(script).await, &agent(KEEPS)).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("fail").await;
    stack.ended(&conversation, 1).await;
    stack.send(&conversation, &json!({"content": "wait"})).await;
    stack.asked(2).await;
    stack.client().cancel(&conversation).await.unwrap();
    stack.ended(&conversation, 2).await;
    stack.send(&conversation, &json!({"content": "end"})).await;
    let events = stack.ended(&conversation, 3).await;
    assert_eq!(count(&events, "complete"), 1);
    completed(&stack, &conversation, 1).await;
    assert_eq!(stack.effects().len(), 1);
}

/// Each agent has its own: the turn's, and that of a sub-agent with its task and its answer.
#[tokio::test]
async fn a_sub_agent_has_hooks_of_its_own() {
    let script = |request: &Request| match (
        request.last("system") == "helper",
        request.results_since_user(),
    ) {
        (true, _) => Reply::text("Helped."),
        (false, 0) => Reply::text("").call("delegate", &json!({"agent": "helper", "task": "sums"})),
        (false, _) => Reply::text("Done."),
    };
    let hook = r#"after_turn = [{ name = "test_read", input = { fail = "{agent}: {message} {answer}" } }]"#;
    let agents = format!(
        "tools = []\ndelegates = [\"helper\"]\n[agents.default.hooks]\n{hook}\n[agents.helper]\nprovider = \"scripted\"\n\
         model = \"scripted\"\ninstructions = \"helper\"\n[agents.helper.hooks]\n{hook}\n"
    );
    let stack = Stack::with_agent(Model::start(script).await, &agents).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("add").await;
    stack.ended(&conversation, 1).await;
    completed(&stack, &conversation, 2).await;
    let kept = stack.dump().await;
    assert!(kept.contains("helper: sums Helped.") && kept.contains("default: add Done."));
}

/// They are bounded in number: past the limit, the hooks of a turn are left out, and the turn is not.
#[tokio::test]
async fn too_many_hooks_at_once_are_left_out() {
    // Eight hooks a turn, so that 64 are those of eight turns.
    let hooks = [KEEPS; 8].join(", ");
    let stack = stack(&hooks).await;
    stack.configure("[worker]\nmax_concurrent_activities = 200\n");
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "one").await;
    for turn in 1..=9 {
        stack.ended(&conversation, turn).await;
        if turn < 9 {
            stack.held(&conversation, 8 * turn).await;
            stack.send(&conversation, &json!({"content": "more"})).await;
        }
    }
    completed(&stack, &conversation, 1).await;
    stack.let_go(&conversation);
    completed(&stack, &conversation, 9).await;
    assert_eq!(stack.effects().len(), 64);
}

/// Whoever deletes a conversation does not wait for its hooks, and they leave nothing behind.
#[tokio::test]
async fn hooks_of_a_deleted_conversation_end() {
    let stack = stack(KEEPS).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "one").await;
    stack.ended(&conversation, 1).await;
    stack.held(&conversation, 1).await;
    let url = format!("{}/api/v1/agent/conversations/{conversation}", stack.url());
    let answer = stack.http.delete(url).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    stack.let_go(&conversation);
    // Their workflow goes with the conversation, and the worker ends what it has of them.
    for status in ["Running", "Completed"] {
        are(&stack, &conversation, status, 0).await;
    }
    assert_eq!(worker.terminate().await, Some(0));
    // Only the note that stops a late begin from creating it again, and the entry of the audit trail that tells of it.
    let dump = stack.dump().await;
    let left: Vec<_> = dump
        .lines()
        .filter(|it| it.contains(&conversation))
        .collect();
    assert!(dump.matches(&conversation).count() <= 2, "{left:#?}");
}
