//! The context of a model: what is sent of a long turn, and what stands for the rest.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use everturn_tests::{
    events::{assert_gap_free, contents, count, data, types},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

const TASK: &str = "Look at every part of the machine, and remember the number 4711.";
const SUMMARY: &str = "So far all parts were sound.";

/// True for a request that asks for a summary.
fn asks_for_summary(request: &Request) -> bool {
    request.last("user").contains("Write a summary")
}

/// Calls a tool with a long result so often, then answers. It writes a summary when it is asked for one.
fn looks(calls: usize, output_bytes: usize) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    let asked = Arc::new(AtomicUsize::new(0));
    move |request| {
        if asks_for_summary(request) {
            return Reply::text(SUMMARY);
        }
        if asked.fetch_add(1, Ordering::Relaxed) < calls {
            return Reply::text("One more.")
                .call("test_read", &json!({"output_bytes": output_bytes}));
        }
        Reply::text("All parts are sound.")
    }
}

fn agent(window: usize) -> String {
    format!(
        "tools = [\"test_read\"]\nllm_timeout = \"1h\"\nmax_steps = 2000\ncontext_window = {window}\n"
    )
}

fn messages(request: &Request) -> &[Value] {
    request.body["messages"].as_array().unwrap()
}

/// True when the request begins with the whole of the one before.
fn goes_on(before: &Request, request: &Request) -> bool {
    messages(request).starts_with(messages(before)) && before.body["tools"] == request.body["tools"]
}

fn has(request: &Request, text: &str) -> bool {
    let mut messages = messages(request).iter();
    messages.any(|message| message["content"].to_string().contains(text))
}

/// Each call has its result, and each result its call.
fn is_whole(request: &Request) -> bool {
    let ids = |of: &dyn Fn(&Value) -> Vec<String>| -> Vec<String> {
        let mut ids: Vec<_> = messages(request).iter().flat_map(of).collect();
        ids.sort();
        ids
    };
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    let calls = ids(&|message| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        calls.map(|call| id(&call["id"])).collect()
    });
    let results = ids(&|message| {
        let result = (message["role"] == "tool").then(|| id(&message["tool_call_id"]));
        result.into_iter().collect()
    });
    calls == results
}

/// A turn of many steps is compacted a few times. Between two times a provider reads each request from its cache.
#[tokio::test]
async fn a_long_turn_is_compacted_seldom_and_keeps_its_task() {
    const CALLS: usize = 220;
    // Each step adds some 1,200 bytes, so the window is full after some 100 of them.
    let stack = Stack::with_agent(Model::start(looks(CALLS, 1000)).await, &agent(50_000)).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask(TASK).await;
    let events = stack.ended(&conversation, 1).await;
    assert_gap_free(&events);
    assert_eq!(
        contents(&events, "assistant_message"),
        ["All parts are sound."]
    );
    let requests = stack.model.requests();
    let summaries = requests
        .iter()
        .filter(|request| asks_for_summary(request))
        .count();
    let compacted = data(&events, "context_compacted");
    assert!(
        summaries >= 2 && compacted.len() == summaries,
        "{summaries}"
    );
    assert_eq!(requests.len(), CALLS + 1 + summaries, "each is paid once");
    assert!(
        requests
            .iter()
            .all(|request| has(request, "4711") && is_whole(request))
    );
    for first in 0..requests.len() - 200 {
        let some = &requests[first..=first + 200];
        let hits = some
            .windows(2)
            .filter(|pair| goes_on(&pair[0], &pair[1]))
            .count();
        assert!(hits >= 190, "{hits} of 200 from {first}");
    }
    // No request is larger than the window, as the provider counts it.
    let largest = requests
        .iter()
        .map(|request| request.body["messages"].to_string().len());
    assert!(largest.max().unwrap() / 3 < 50_000);
    // What was replaced is told, and is still there.
    assert_eq!(compacted[0]["summary"], SUMMARY);
    assert_eq!(compacted[0]["from_sequence"], 2);
    assert_eq!(count(&events, "observe"), CALLS);
    let complete = data(&events, "complete")[0];
    assert_eq!(complete["steps"], requests.len());
    // The next turn goes on from the last summary.
    stack
        .send(&conversation, &json!({"content": "And now?"}))
        .await;
    stack.ended(&conversation, 2).await;
    let last = stack.model.requests().pop().unwrap();
    assert!(has(&last, SUMMARY) && has(&last, "4711") && has(&last, "All parts are sound."));
    assert!(messages(&last).len() < 2 * CALLS);
}

/// A message that joins the turn is part of its task.
#[tokio::test]
async fn what_joins_the_turn_is_never_left_out() {
    let asked = Arc::new(AtomicUsize::new(0));
    let script = move |request: &Request| match asked.fetch_add(1, Ordering::Relaxed) {
        _ if asks_for_summary(request) => Reply::text(SUMMARY),
        0 => Reply::text("First.").held().call("test_read", &json!({})),
        calls if calls < 60 => {
            Reply::text("One more.").call("test_read", &json!({"output_bytes": 1000}))
        }
        _ => Reply::text("Done."),
    };
    let stack = Stack::with_agent(Model::start(script).await, &agent(8_000)).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask(TASK).await;
    stack.asked(1).await;
    let steer = json!({"content": "Leave out part 17.", "on_busy": "steer"});
    assert_eq!(stack.send(&conversation, &steer).await.0, 202);
    stack.model.release();
    let events = stack.ended(&conversation, 1).await;
    assert!(count(&events, "context_compacted") >= 3);
    let requests = stack.model.requests();
    let after = requests.iter().skip(1);
    assert!(
        after
            .clone()
            .all(|request| has(request, "4711") && has(request, "part 17"))
    );
    assert!(after.clone().all(is_whole));
}

/// kill -9 around the summary: it is paid once, and saved once.
#[tokio::test]
async fn a_summary_survives_its_worker() {
    for failpoint in ["save.compaction.before", "save.compaction.after"] {
        let stack = Stack::with_agent(Model::start(looks(30, 1000)).await, &agent(10_000)).await;
        let _gateway = stack.gateway().await;
        let worker = stack.worker_stopping_at(failpoint);
        let (conversation, _) = stack.ask(TASK).await;
        stack.reached(failpoint).await;
        worker.kill().await;
        let _next = stack.worker();
        let events = stack.ended(&conversation, 1).await;
        assert_gap_free(&events);
        let requests = stack.model.requests();
        let summaries = requests
            .iter()
            .filter(|request| asks_for_summary(request))
            .count();
        assert!(summaries > 0, "{failpoint}");
        assert_eq!(
            count(&events, "context_compacted"),
            summaries,
            "{failpoint}"
        );
        assert_eq!(
            requests.len(),
            31 + summaries,
            "{failpoint}: nothing is paid twice"
        );
        // A reset saves the same again, and asks nothing again.
        stack.reset(&conversation).await;
        stack.workflow_status(&conversation, "COMPLETED").await;
        assert_eq!(stack.events(&conversation).await, events);
        assert_eq!(stack.model.requests().len(), requests.len());
    }
}

/// A cancel while the summary is written ends the turn without it.
#[tokio::test]
async fn a_cancel_ends_a_summary() {
    let calls = looks(30, 1000);
    let script = move |request: &Request| {
        if asks_for_summary(request) {
            Reply::text(SUMMARY).held()
        } else {
            calls(request)
        }
    };
    let stack = Stack::with_agent(Model::start(script).await, &agent(10_000)).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask(TASK).await;
    everturn_tests::wait::until("a summary is asked for", || async {
        let requests = stack.model.requests();
        requests.iter().any(asks_for_summary).then_some(())
    })
    .await;
    let (status, _) = stack
        .post(&format!("/conversations/{conversation}/cancel"), &json!({}))
        .await;
    assert_eq!(status, 202);
    let events = stack.ended(&conversation, 1).await;
    assert!(
        types(&events).ends_with("observe cancelled"),
        "{}",
        types(&events)
    );
}

/// The provider's window may be smaller than the configuration says.
#[tokio::test]
async fn a_context_that_the_provider_refuses_is_compacted() {
    let calls = looks(30, 1000);
    let script = move |request: &Request| {
        if request.body["messages"].to_string().len() > 20_000 {
            return Reply::error(400, "context_length_exceeded");
        }
        calls(request)
    };
    let agent = "tools = [\"test_read\"]\nllm_timeout = \"1h\"\nmax_steps = 100\n";
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask(TASK).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        contents(&events, "assistant_message"),
        ["All parts are sound."]
    );
    let compacted = data(&events, "context_compacted");
    assert!(!compacted.is_empty());
    assert!(
        compacted.iter().any(|event| event["summary"] == SUMMARY),
        "{compacted:?}"
    );
    assert!(
        stack
            .model
            .requests()
            .iter()
            .all(|request| has(request, "4711"))
    );
    // What cannot be made shorter ends the turn.
    let (conversation, _) = stack.ask(&"long ".repeat(5_000)).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(data(&events, "error")[0]["code"], "llm_context_too_long");
}

/// Older messages are left out when there are no summaries, and the model is told so.
#[tokio::test]
async fn older_messages_may_be_left_out_without_a_summary() {
    let keys = format!("{}on_full_context = \"drop\"\n", agent(10_000));
    let stack = Stack::with_agent(Model::start(looks(40, 1000)).await, &keys).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask(TASK).await;
    let events = stack.ended(&conversation, 1).await;
    let requests = stack.model.requests();
    assert_eq!(requests.len(), 41, "no summary is paid for");
    let compacted = data(&events, "context_compacted");
    assert!(!compacted.is_empty() && compacted.iter().all(|event| event["summary"] == ""));
    assert!(requests.iter().all(|request| has(request, "4711")));
    assert!(has(requests.last().unwrap(), "are left out"));
}

/// A sub-agent has a thread of its own, with a task of its own.
#[tokio::test]
async fn a_sub_agents_context_is_compacted_for_itself() {
    let calls = looks(30, 1000);
    let script = move |request: &Request| match (
        has(request, "Delegate this."),
        request.results_since_user(),
    ) {
        (true, 0) => Reply::text("").call("delegate", &json!({"agent": "worker", "task": TASK})),
        (true, _) => Reply::text("It is done."),
        (false, _) => calls(request),
    };
    let keys = "tools = []\nllm_timeout = \"1h\"\ndelegates = [\"worker\"]\n";
    let stack = Stack::with_agent(Model::start(script).await, keys).await;
    let provider = "provider = \"scripted\"\nmodel = \"scripted\"\n";
    stack.configure(&format!("[agents.worker]\n{provider}{}", agent(10_000)));
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Delegate this.").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        contents(&events, "assistant_message").last(),
        Some(&"It is done.")
    );
    let compacted = data(&events, "context_compacted");
    let sub_agent = &data(&events, "sub_agent_start")[0]["agent_execution_id"];
    assert!(!compacted.is_empty());
    assert!(
        compacted
            .iter()
            .all(|event| event["agent_execution_id"] == *sub_agent)
    );
    let requests = stack.model.requests();
    let own = requests
        .iter()
        .filter(|request| !has(request, "Delegate this."));
    assert!(own.clone().count() > 30 && own.clone().all(|request| has(request, "4711")));
}

/// The results of one step together are never longer than a part of the window; the model can read the rest.
#[tokio::test]
async fn long_results_are_shortened_and_can_be_read() {
    let script = |request: &Request| {
        let results = request.results_since_user();
        if results == 0 {
            let call = json!({"output_bytes": 5_000});
            return (0..8).fold(Reply::text("All at once."), |reply, _| {
                reply.call("test_read", &call)
            });
        }
        if results == 8 {
            let result: Value = serde_json::from_str(&request.last("tool")).unwrap();
            let input = json!({"execution_id": result["execution_id"], "offset_bytes": 0});
            return Reply::text("I read the last one.").call("read_result", &input);
        }
        Reply::text("Read.")
    };
    let stack = Stack::with_agent(Model::start(script).await, &agent(10_000)).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask(TASK).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(contents(&events, "assistant_message"), ["Read."]);
    assert_eq!(count(&events, "context_compacted"), 0);
    let requests = stack.model.requests();
    assert!(requests[1].body["messages"].to_string().len() < 12_000);
    let read = requests[2].last("tool");
    assert!(read.contains(&"x".repeat(5_000)), "{}", read.len());
    assert!(goes_on(&requests[1], &requests[2]));
}
