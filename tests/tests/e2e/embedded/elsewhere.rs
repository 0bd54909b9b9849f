//! Workers with different configurations on one queue, as in a rollout. What one worker does not know is left to another
//! one, and a turn ends with an error only when nobody has known for a while.

use std::fs;

use everturn_tests::{
    events::{data, types},
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};
use serde_json::json;

const TURNS: usize = 12;

/// A provider and an agent that the configuration of the stack does not have. The tool is that of the example
/// `own-tool`.
const COUNTER: &str =
    "[agents.counter]\nprovider = \"fresh\"\nmodel = \"scripted\"\ninstructions = \"Count.\"\n";
const ITS_TOOL: &str = "tools = [\"word_count\"]\n";

/// A stack whose gateway and workers have the agent `counter`. What they had before is in the file `old.toml`.
async fn stack(model: Model, wait_for_peer: &str) -> Stack {
    let stack = Stack::new(model).await;
    let text = fs::read_to_string(stack.path("everturn.toml")).unwrap();
    let worker = format!("\n[worker]\nwait_for_peer = \"{wait_for_peer}\"\n");
    fs::write(stack.path("old.toml"), format!("{text}{worker}")).unwrap();
    let provider = format!(
        "[providers.fresh]\nkind = \"openai\"\nbase_url = \"{}\"\n",
        stack.model.base_url()
    );
    // The agent is the same, without the tool.
    let no_tool = format!("{text}{worker}\n{provider}\n{COUNTER}");
    fs::write(stack.path("no_tool.toml"), no_tool).unwrap();
    stack.configure(&format!("{worker}\n{provider}\n{COUNTER}{ITS_TOOL}"));
    stack
}

/// Starts a worker with another configuration. Its log has the name of the file.
fn worker_with(stack: &Stack, file: &str) -> Process {
    let path = stack.path(&format!("{file}.toml"));
    let config = ("EVERTURN_CONFIG", path.to_str().unwrap());
    stack.spawn(&["worker"], file, &[config])
}

/// Creates a conversation of the agent `counter`, with one message.
async fn ask(stack: &Stack) -> String {
    let client = stack.client();
    let conversation = client.create_conversation(Some("counter")).await.unwrap();
    client.submit(&conversation, "count", None).await.unwrap();
    conversation
}

#[tokio::test]
async fn what_one_worker_lacks_is_left_to_another() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("")
            .call("word_count", &json!({"text": "one two  three"}))
            .held(),
        _ => Reply::text("Three."),
    });
    let stack = stack(model.await, "5m").await;
    let _gateway = stack.gateway().await;
    // The first worker of the rollout comes when an old one has the first turns in its hands.
    let _old = worker_with(&stack, "old");
    let mut conversations = Vec::new();
    for _ in 0..TURNS {
        conversations.push(ask(&stack).await);
    }
    stack.logged("old", "no agent `counter`").await;
    let _new = stack.worker_of("own-tool");
    stack.asked(TURNS).await;
    // This one knows agent and provider. It gets half of the calls of the tool.
    let _between = worker_with(&stack, "no_tool");
    stack.logged("no_tool", "worker is running").await;
    stack.model.release();
    for conversation in &conversations {
        let events = stack.ended(conversation, 1).await;
        assert_eq!(
            types(&events),
            "user_message thought act observe assistant_message complete"
        );
        let observe = &data(&events, "observe")[0];
        assert_eq!(observe["result"]["words"], 3, "{observe}");
    }
    stack.logged("no_tool", "no tool `word_count`").await;
    assert_eq!(
        stack.model.requests().len(),
        2 * TURNS,
        "no call was paid twice"
    );
}

#[tokio::test]
async fn what_nobody_knows_ends_after_a_while() {
    let model = Model::start(|_: &Request| Reply::text("Never."));
    let stack = stack(model.await, "2s").await;
    let _gateway = stack.gateway().await;
    let _old = worker_with(&stack, "old");
    let events = {
        let conversation = ask(&stack).await;
        stack.ended(&conversation, 1).await
    };
    assert_eq!(types(&events), "user_message error");
    let error = &data(&events, "error")[0];
    assert_eq!(error["code"], "unknown_agent", "{error}");
    stack.logged("old", "another worker is asked").await;
}

/// A new run of the workflow has tries of its own, and the engine counts them anew.
#[tokio::test]
async fn a_step_is_not_called_more_often_because_its_run_was_reset() {
    let model = Model::start(|_: &Request| Reply::error(502, "bad_gateway"));
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(3).await;
    stack.reset(&conversation).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(data(&events, "error")[0]["code"], "llm_unavailable");
    let calls = stack.model.requests().len();
    // The call that the reset met may be counted as one that was lost.
    assert!(calls == 6 || calls == 5, "{calls} calls");
}
