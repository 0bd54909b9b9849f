//! The configuration loses a tool or a provider while a turn waits for a person. The turn goes on without the lost part,
//! and only a call of a removed tool gets an error.

use std::fs;

use everturn_tests::{
    events::{data, error, types},
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};
use serde_json::{Value, json};

use super::approvals::{APPROVED_TURN, ASKING, answer, one_call, pending};

/// A worker first leaves a turn to other workers, for a second. Changed files are in use at once.
const SETTINGS: &str = "[worker]\nwait_for_peer = \"1s\"\n[reload]\ninterval = \"100ms\"\n";

/// A tool that a file of `agents.d` configures. Nothing answers there.
const FORECAST: &str =
    "[tools.forecast]\ndescription = \"The weather.\"\nurl = \"https://a.b/\"\neffect = \"read\"\n";

/// Writes the agent `helper` with these tools, and tables for the tools.
fn write_helper(stack: &Stack, tools: &str, tables: &str) {
    let agent = format!(
        "[agents.helper]\nprovider = \"scripted\"\nmodel = \"scripted\"\ntools = [{tools}]\n{tables}"
    );
    fs::create_dir_all(stack.path("agents.d")).unwrap();
    fs::write(stack.path("agents.d/helper.toml"), agent).unwrap();
}

/// Asks the agent `helper`, whose call then waits for a person. Returns the conversation and the call.
async fn asked(stack: &Stack) -> (String, Value) {
    let client = stack.client();
    let conversation = client.create_conversation(Some("helper")).await.unwrap();
    client.submit(&conversation, "do it", None).await.unwrap();
    let call = pending(stack, &conversation, 1).await.remove(0);
    (conversation, call)
}

/// Approves the call, and returns the events of the whole turn.
async fn approved(stack: &Stack, conversation: &str, call: &Value) -> Vec<Value> {
    let (status, said) = answer(stack, conversation, call, json!({"decision": "approve"})).await;
    assert_eq!(status, 200, "{said}");
    stack.ended(conversation, 1).await
}

/// The names of the tools that a request offers.
fn offered(request: &Request) -> Vec<&str> {
    let tools = request.body["tools"].as_array();
    let tools = tools.into_iter().flatten();
    let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap());
    names.collect()
}

#[tokio::test]
async fn a_turn_goes_on_without_a_removed_tool_and_only_a_call_of_the_tool_fails() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("May I?").call("test_once", &json!({"effect": true})),
        // The model has seen the tool before.
        1 => Reply::text("").call("forecast", &json!({})),
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    stack.configure(SETTINGS);
    let asking = "{ name = \"test_once\", approval = \"always\" }";
    write_helper(&stack, &format!("{asking}, \"forecast\""), FORECAST);
    let _running = stack.start_with_one_worker().await;
    let (conversation, call) = asked(&stack).await;
    write_helper(&stack, asking, "");
    stack.logged("worker", "removed tool forecast").await;
    let events = approved(&stack, &conversation, &call).await;
    assert_eq!(
        types(&events),
        "user_message thought act approval_requested approval_resolved observe thought act observe \
         assistant_message complete"
    );
    assert_eq!(stack.effects().len(), 1);
    let told = error(&events, "forecast");
    assert!(told.contains("no tool `forecast`"), "{told}");
    let requests = stack.model.requests();
    let offers: Vec<_> = requests.iter().map(offered).collect();
    assert_eq!(
        offers,
        [
            vec!["test_once", "forecast"],
            vec!["test_once"],
            vec!["test_once"]
        ]
    );
    // The turn has waited for another worker once, and not in each step.
    let log = fs::read_to_string(stack.path("worker.log")).unwrap();
    let goes_on = "goes on without tool `forecast`";
    assert_eq!(log.matches(goes_on).count(), 1, "{log}");
}

#[tokio::test]
async fn an_approved_call_of_a_removed_tool_fails_and_the_turn_completes() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("May I?").call("forecast", &json!({})),
        _ => Reply::text("I cannot know."),
    });
    let stack = Stack::new(model.await).await;
    stack.configure(SETTINGS);
    let asking = "{ name = \"forecast\", approval = \"always\" }";
    write_helper(&stack, asking, FORECAST);
    let _running = stack.start_with_one_worker().await;
    let (conversation, call) = asked(&stack).await;
    write_helper(&stack, "\"test_read\"", "");
    stack.logged("worker", "removed tool forecast").await;
    let events = approved(&stack, &conversation, &call).await;
    assert_eq!(types(&events), APPROVED_TURN);
    let told = error(&events, "forecast");
    assert!(told.contains("`forecast` was removed"), "{told}");
}

/// Asks the default agent, whose call then waits for a person. Then replaces texts of the configuration, and the worker.
/// Returns the new worker, the conversation and the call.
async fn restarted(
    stack: &Stack,
    worker: Process,
    changes: &[(&str, &str)],
) -> (Process, String, Value) {
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(stack, &conversation, 1).await.remove(0);
    worker.kill().await;
    let file = stack.path("everturn.toml");
    let mut text = fs::read_to_string(&file).unwrap();
    for (old, new) in changes {
        assert!(text.contains(old), "{text}");
        text = text.replace(old, new);
    }
    fs::write(file, text).unwrap();
    let worker = stack.spawn(&["worker"], "restarted", &[]);
    (worker, conversation, call)
}

/// The new name of the provider.
const RENAMED: [(&str, &str); 2] = [
    ("[providers.scripted]", "[providers.renamed]"),
    ("provider = \"scripted\"", "provider = \"renamed\""),
];

#[tokio::test]
async fn a_turn_goes_on_with_the_present_model_of_its_agent_after_its_provider_is_renamed() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    stack.configure(SETTINGS);
    let (worker, _gateway) = stack.start_with_one_worker().await;
    let (_worker, conversation, call) = restarted(&stack, worker, &RENAMED).await;
    let events = approved(&stack, &conversation, &call).await;
    assert_eq!(types(&events), APPROVED_TURN);
    assert_eq!(stack.effects().len(), 1);
    assert_eq!(stack.model.requests().len(), 2, "no call was paid twice");
    let log = "goes on without provider `scripted`";
    stack.logged("restarted", log).await;
}

#[tokio::test]
async fn a_turn_without_any_model_ends_with_a_code_of_its_own() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    stack.configure(SETTINGS);
    let (worker, _gateway) = stack.start_with_one_worker().await;
    let [provider, of_agent] = RENAMED;
    let changes = [provider, of_agent, ("[agents.default]", "[agents.other]")];
    let (_worker, conversation, call) = restarted(&stack, worker, &changes).await;
    let events = approved(&stack, &conversation, &call).await;
    assert_eq!(
        types(&events),
        "user_message thought act approval_requested approval_resolved observe error"
    );
    assert_eq!(stack.effects().len(), 1);
    let error = data(&events, "error")[0];
    assert_eq!(error["code"], "model_not_configured", "{error}");
    assert_eq!(stack.model.requests().len(), 1);
}
