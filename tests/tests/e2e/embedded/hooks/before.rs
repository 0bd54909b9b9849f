//! Hooks that run before a turn: what they give stands in front of its task, in each of its requests and in no other.

use everturn_client::GatewayClient;
use everturn_tests::{
    events::{count, data, error, observe, types},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

use super::{blocks, content, messages};
use crate::embedded::keys::{AUTH, create};

/// An agent with this hook, which runs before its turns.
pub(super) fn agent(hook: &str) -> String {
    format!(
        "llm_timeout = \"1h\"\ntools = [\"calculate\", \"test_read\"]\n[agents.default.hooks]\nbefore_turn = [{hook}]\n"
    )
}

/// What the message says is looked up.
const LOOKS_UP: &str = r#"{ name = "calculate", input = { expression = "{message}" } }"#;

/// Calls a tool, then answers.
fn works(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I look.").call("calculate", &json!({"expression": "1 + 1"})),
        _ => Reply::text("Done."),
    }
}

/// The turn goes on without what the hook gives.
async fn assert_goes_on(hook: &str, why: &str) {
    let stack = Stack::with_agent(Model::start(works).await, &agent(hook)).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(count(&events, "complete"), 1, "{events:#?}");
    let told = error(&events, "test_read");
    assert!(told.contains(why), "{told}");
    let requests = stack.model.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| blocks(request).is_empty()));
}

#[tokio::test]
async fn what_a_hook_gives_is_in_each_request_of_its_turn_and_in_no_other() {
    let stack = Stack::with_agent(Model::start(works).await, &agent(LOOKS_UP)).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("20 + 1").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message act observe thought act observe assistant_message complete"
    );
    let acts = data(&events, "act");
    assert_eq!(acts[0]["hook"], "before_turn");
    assert_eq!(acts[0]["tool_input"], json!({"expression": "20 + 1"}));
    assert_eq!(acts[1]["hook"], Value::Null);
    // The step of the hooks calls no model, and is not counted.
    assert_eq!(data(&events, "complete")[0]["steps"], 2);
    let path = format!("/conversations/{conversation}/executions");
    let executions = stack.get(&path).await["executions"].clone();
    let id = executions[0]["id"].as_str().unwrap();
    let usage = stack.get(&format!("{path}/{id}")).await["step_usage"].clone();
    assert_eq!(usage.as_array().unwrap().len(), 2, "{usage:#}");
    stack
        .send(&conversation, &json!({"content": "30 + 3"}))
        .await;
    stack.ended(&conversation, 2).await;
    let requests = stack.model.requests();
    assert_eq!(requests.len(), 4);
    for (turn, task, given) in [
        (&requests[..2], "20 + 1", "21"),
        (&requests[2..], "30 + 3", "33"),
    ] {
        let [first, second] = turn else {
            unreachable!()
        };
        assert!(messages(second).starts_with(messages(first)));
        let found = blocks(first);
        assert_eq!(found.len(), 1, "{:#}", first.body["messages"]);
        // The block and the task are one message: two messages of a user in a row are joined.
        let block = content(&messages(first)[found[0]]);
        assert!(
            block.contains("\n\n## calculate\n\n") && block.contains(given),
            "{block}"
        );
        assert!(block.ends_with(&format!("\n\n{task}")), "{block}");
    }
    // It was for the first turn alone. The ids of its calls may have any digits, so only texts are read.
    for message in messages(&requests[2]) {
        let text = content(message);
        assert!(!text.contains("21"), "{text}");
    }
    // The call of the hook is in no request either.
    let calls = requests[2].body["messages"].to_string();
    assert!(!calls.contains(r#"\"20 + 1\""#), "{calls}");
}

#[tokio::test]
async fn a_hook_that_fails_loses_no_turn() {
    assert_goes_on(
        r#"{ name = "test_read", input = { fail = "no memory" } }"#,
        "no memory",
    )
    .await;
    assert_goes_on(r#"{ name = "test_read", input = { no = 1 } }"#, "no").await;
}

#[tokio::test]
async fn a_slow_hook_meets_its_limit() {
    let hook = r#"{ name = "test_read", timeout = "1s", input = { sleep_ms = 600000 } }"#;
    assert_goes_on(hook, "did not finish within 1 s").await;
}

/// The person stops a turn whose hook never ends.
#[tokio::test]
async fn a_cancel_reaches_a_hook() {
    let hook =
        r#"{ name = "test_read", timeout = "10m", input = { sleep_ms = 600000, effect = true } }"#;
    let stack = Stack::with_agent(Model::start(works).await, &agent(hook)).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.had_effects(1).await;
    stack.client().cancel(&conversation).await.unwrap();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message act observe cancelled");
    assert_eq!(observe(&events, "test_read")["is_error"], true);
    assert_eq!(stack.model.requests().len(), 0);
}

#[tokio::test]
async fn the_results_of_a_turn_stay_when_it_is_compacted() {
    let script = |request: &Request| {
        if request.last("user").contains("Write a summary") {
            return Reply::text("So far all was sound.");
        }
        // The number of its own requests, as the tokens of one are as many as all bytes of it.
        if request.number < 30 {
            Reply::text("One more.").call("test_read", &json!({"output_bytes": 2000}))
        } else {
            Reply::text("Done.")
        }
    };
    let agent = format!(
        "context_window = 10000\nmax_steps = 100\n{}",
        agent(LOOKS_UP)
    );
    let stack = Stack::with_agent(Model::start(script).await, &agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("20 + 1").await;
    let events = stack.ended(&conversation, 1).await;
    assert!(
        count(&events, "context_compacted") >= 2,
        "{}",
        types(&events)
    );
    for request in stack.model.requests() {
        let found = blocks(&request);
        assert_eq!(found.len(), 1, "{:#}", request.body["messages"]);
        let block = content(&messages(&request)[found[0]]);
        assert!(block.ends_with("\n\n20 + 1"), "{block}");
    }
    stack
        .send(&conversation, &json!({"content": "2 + 2"}))
        .await;
    stack.ended(&conversation, 2).await;
    let last = stack.model.requests().pop().unwrap();
    assert_eq!(blocks(&last).len(), 1);
    assert!(!last.body["messages"].to_string().contains("\"21\""));
}

/// The step in which hooks are planned is none of those that the agent may have.
#[tokio::test]
async fn hooks_take_no_step_of_the_agent() {
    let answers = |_: &Request| Reply::text("Done.");
    let agent = format!("max_steps = 1\n{}", agent(LOOKS_UP));
    let stack = Stack::with_agent(Model::start(answers).await, &agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("1 + 1").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message act observe assistant_message complete"
    );
}

#[tokio::test]
async fn a_hook_is_told_whose_turn_it_is_and_nothing_of_others() {
    let hook = r#"{ name = "test_read", input = { fail = "{tenant_id}/{user_id}/{conversation_id}/{message}" } }"#;
    let stack = Stack::with_agent(Model::start(works).await, &agent(hook)).await;
    stack.configure(AUTH);
    let _running = stack.start().await;
    let keys = [
        &["--tenant", "acme"][..],
        &["--tenant", "other", "--owner", "ann"],
    ];
    for (key, whose) in keys.into_iter().zip(["acme/", "other/ann"]) {
        let key = create(&stack, key).await;
        let client = GatewayClient::with_token(&stack.url(), Some(&key)).unwrap();
        let conversation = client.create_conversation(None).await.unwrap();
        client.submit(&conversation, "mine", None).await.unwrap();
        let told = everturn_tests::wait::until("the hook has run", || async {
            let path = format!("/conversations/{conversation}/events");
            let url = format!("{}/api/v1/agent{path}", stack.url());
            let page = stack.http.get(url).bearer_auth(&key).send().await.unwrap();
            let page: Value = page.json().await.unwrap();
            let events = page["events"].as_array().unwrap().clone();
            (count(&events, "observe") > 0).then(|| error(&events, "test_read").to_owned())
        })
        .await;
        assert_eq!(told, format!("{whose}/{conversation}/mine"));
    }
}

/// A sub-agent runs the hooks of its own agent, for the task that it was given.
#[tokio::test]
async fn a_sub_agent_runs_its_own_hooks() {
    let script = |request: &Request| match (
        request.last("system") == "helper",
        request.results_since_user(),
    ) {
        (true, _) => Reply::text("Helped."),
        (false, 0) => {
            Reply::text("").call("delegate", &json!({"agent": "helper", "task": "40 + 2"}))
        }
        (false, _) => Reply::text("Done."),
    };
    let agents = format!(
        "tools = []\ndelegates = [\"helper\"]\n[agents.helper]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\
         instructions = \"helper\"\n[agents.helper.hooks]\nbefore_turn = [{LOOKS_UP}]\n"
    );
    let stack = Stack::with_agent(Model::start(script).await, &agents).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("1 + 1").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(count(&events, "complete"), 2, "{}", types(&events));
    let requests = stack.model.requests();
    let given: Vec<_> = requests.iter().map(|it| blocks(it).len()).collect();
    assert_eq!(given, [0, 1, 0]);
    assert!(content(&messages(&requests[1])[1]).contains("42"));
}
