//! Tools in another language, with the worker of `examples/python-tool`. Its tools complete, fail, are slow and are
//! cancelled, and the worker is killed or missing. A `once` tool runs once, whatever happens to Everturn's own workers.

use everturn_proto::ids;
use everturn_tests::{
    events::data,
    model::{Model, Reply, Request},
    python::PythonTools,
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

/// Script of a model that makes the calls of the message, which is a list like `[["transfer", {"amount": 5}]]`.
fn calls(request: &Request) -> Reply {
    if request.results_since_user() > 0 {
        return Reply::text("Done.");
    }
    let calls: Vec<(String, Value)> = serde_json::from_str(&request.last("user")).unwrap();
    calls
        .iter()
        .fold(Reply::text("Calling."), |reply, (tool, input)| {
            reply.call(tool, input)
        })
}

struct Remote {
    tools: PythonTools,
}

impl Remote {
    async fn new() -> Self {
        Self {
            tools: PythonTools::new(Model::start(calls).await).await,
        }
    }

    fn stack(&self) -> &Stack {
        &self.tools.stack
    }

    /// Waits until this many transfers have begun.
    async fn booked(&self, times: usize) {
        wait::until(&format!("{times} transfers are booked"), || async {
            (self.begun() >= times).then_some(())
        })
        .await;
    }

    fn begun(&self) -> usize {
        self.tools
            .ledger()
            .iter()
            .filter(|entry| !entry.contains('-'))
            .count()
    }

    /// Asks for these calls, waits for the end of the turn, and returns the results in call order.
    async fn results(&self, calls: &Value) -> Vec<Value> {
        let (conversation, _) = self.stack().ask(&calls.to_string()).await;
        self.results_of(&conversation).await
    }

    async fn results_of(&self, conversation: &str) -> Vec<Value> {
        let events = self.stack().ended(conversation, 1).await;
        let of = |kind: &str| -> Vec<&Value> {
            events
                .iter()
                .filter(|event| event["event_type"] == kind)
                .map(|event| &event["event_data"])
                .collect()
        };
        let observes = of("observe");
        let result = |act: &Value| {
            let id = &act["execution_id"];
            observes
                .iter()
                .find(|observe| &observe["execution_id"] == id)
                .unwrap()["result"]
                .clone()
        };
        of("act").into_iter().map(result).collect()
    }

    async fn reset(&self, conversation: &str, to: &str) {
        let id = ids::workflow_id(conversation);
        let reset = ["workflow", "reset", "--workflow-id", &id];
        let command = [&reset[..], &["--type", to, "--reason", "test"]].concat();
        self.stack().temporal.succeed(&command).await;
    }
}

fn error(result: &Value) -> &str {
    result["error"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_python_tool_completes_and_fails_and_is_slow() {
    let remote = Remote::new().await;
    let _running = remote.stack().start().await;
    // All calls run at once. The slow one takes longer than its heartbeat time-out.
    let calls = json!([
        ["transfer", {"amount": 5, "seconds": 6}],
        ["transfer", {"amount": 0}],
        ["transfer", {"amount": "many"}],
        ["nobody", {}],
    ]);
    let (results, _python) = tokio::join!(remote.results(&calls), remote.tools.worker_for(2));
    assert_eq!(results[0]["booked"], 5, "{results:#?}");
    assert_eq!(
        results[1],
        json!({"error": "An amount must be positive."}),
        "known: it says so"
    );
    assert!(
        error(&results[2]).contains("do not fit the schema"),
        "{results:#?}"
    );
    assert!(
        error(&results[3]).contains("No worker took the call within 1 s"),
        "{results:#?}"
    );
    assert_eq!(remote.tools.ledger().len(), 1);

    let results = remote
        .results(&json!([["statement", {}], ["statement", {"copies": 1000}]]))
        .await;
    assert_eq!(results[0], remote.tools.ledger()[0].as_str());
    assert_eq!(
        results[1]["truncated"], true,
        "past 16 KiB the model sees a part"
    );
    let results = remote
        .results(&json!([["statement", {"copies": 60_000}]]))
        .await;
    assert!(
        error(&results[0]).contains("the limit is 1048576"),
        "{results:#?}"
    );
}

#[tokio::test]
async fn a_person_approves_a_python_tool_with_another_input() {
    let remote = Remote::new().await;
    let through_engine = "[approvals]\nallow_signal = true\n";
    remote.stack().configure(through_engine);
    let _running = remote.stack().start().await;
    let (conversation, _) = remote.stack().ask(r#"[["asks", {"amount": 500}]]"#).await;
    remote
        .stack()
        .saw(&conversation, "approval_requested")
        .await;
    let events = remote.stack().events(&conversation).await;
    let asked = events
        .iter()
        .find(|event| event["event_type"] == "approval_requested")
        .unwrap();
    let execution_id = &asked["event_data"]["execution_id"];
    let input_hash = &asked["event_data"]["input_hash"];
    let answer =
        json!({"execution_id": execution_id, "decision": "approve", "input_hash": input_hash,
        "tool_input": {"amount": 7}})
        .to_string();
    let id = ids::workflow_id(&conversation);
    let signal = [
        "workflow",
        "signal",
        "--workflow-id",
        &id,
        "--name",
        "resolve_approval",
        "--input",
        &answer,
    ];
    assert!(remote.stack().temporal.cli(&signal).await.status.success());
    let _python = remote.tools.worker_for(1).await;
    let result = &remote.results_of(&conversation).await[0];
    assert_eq!(result["booked"], 7);
    assert_eq!(
        result["tool_call_id"], asked["event_data"]["call_id"],
        "the tool knows its call"
    );
    assert_eq!(remote.begun(), 1);
}

#[tokio::test]
async fn a_python_tool_emits_events_in_its_result() {
    let remote = Remote::new().await;
    let _running = remote.stack().start().await;
    let calls = json!([["transfer", {"amount": 10_000}]]).to_string();
    let (conversation, _) = remote.stack().ask(&calls).await;
    let _python = remote.tools.worker_for(1).await;
    let results = remote.results_of(&conversation).await;
    assert_eq!(results[0]["booked"], 10_000);
    assert!(results[0].get("everturn/events").is_none(), "{results:#?}");
    let events = remote.stack().ended(&conversation, 1).await;
    let matches = data(&events, "pattern_match");
    assert_eq!(matches.len(), 1, "{events:#?}");
    assert_eq!(matches[0]["pattern"], "large_transfer");
    assert_eq!(matches[0]["amount"], 10_000);
}

#[tokio::test]
async fn a_cancel_reaches_a_python_tool() {
    let remote = Remote::new().await;
    let _running = remote.stack().start().await;
    let (conversation, _) = remote
        .stack()
        .ask(r#"[["transfer", {"amount": 5, "seconds": 600}]]"#)
        .await;
    let _python = remote.tools.worker_for(1).await;
    remote.booked(1).await;
    remote
        .stack()
        .post(&format!("/conversations/{conversation}/cancel"), &json!({}))
        .await;
    let events = remote.stack().ended(&conversation, 1).await;
    assert_eq!(events.last().unwrap()["event_type"], "cancelled");
    wait::until("the tool has taken it back", || async {
        remote
            .tools
            .ledger()
            .iter()
            .any(|entry| entry.ends_with(" -5"))
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_killed_python_worker_is_an_unknown_outcome_or_another_try() {
    let remote = Remote::new().await;
    let _running = remote.stack().start().await;
    let calls = r#"[["transfer", {"amount": 5, "seconds": 600}], ["statement", {"seconds": 3}]]"#;
    let (conversation, _) = remote.stack().ask(calls).await;
    let mut python = remote.tools.worker_for(2).await;
    remote.booked(1).await;
    python.kill().await.unwrap();
    let _next = remote.tools.worker();
    let results = remote.results_of(&conversation).await;
    assert!(
        error(&results[0]).contains("may or may not have had its effect"),
        "{results:#?}"
    );
    assert_eq!(
        results[1],
        remote.tools.ledger()[0].as_str(),
        "a tool that only reads is tried again"
    );
    assert_eq!(remote.tools.ledger().len(), 1, "and the other is not");
}

#[tokio::test]
async fn our_worker_is_killed_around_a_python_tool_that_runs_once() {
    let remote = Remote::new().await;
    let stack = remote.stack();
    let _gateway = stack.gateway().await;
    let worker = stack.worker_holding(&[]);
    let message = r#"[["transfer", {"amount": 5}]]"#;
    let mut conversations = Vec::new();
    for place in [
        "tool.before_claim",
        "tool.after_claim",
        "tool.before_record",
        "tool.after_record",
    ] {
        conversations.push(stack.ask_held(place, message).await);
    }
    let mut python = remote.tools.worker_for(2).await;
    for conversation in &conversations {
        stack.held(conversation, 1).await;
    }
    worker.kill().await;
    python.kill().await.unwrap();
    let _next = stack.worker();
    let _python = remote.tools.worker_for(2).await;
    for conversation in &conversations {
        let results = remote.results_of(conversation).await;
        assert_eq!(results[0]["booked"], 5, "{conversation}: {results:#?}");
    }
    assert_eq!(
        remote.tools.ledger().len(),
        conversations.len(),
        "each once: {:?}",
        remote.tools.ledger()
    );
}

/// A result that the tool's worker sends to the gateway does not travel through the engine.
#[tokio::test]
async fn large_results_are_sent_to_the_gateway() {
    const CALLS: usize = 16;
    let remote = Remote::new().await;
    let _running = remote.stack().start().await;
    let gateway = remote.stack().gateway_url(0);
    let environment = [("EVERTURN_URL", gateway.as_str())];
    let transfer = json!([["transfer", {"amount": 5}]]);
    let (_, _python) = tokio::join!(
        remote.results(&transfer),
        remote.tools.worker_for_with(1, &environment)
    );
    let calls: Vec<_> = (0..CALLS)
        .map(|_| json!(["statement", {"copies": 49_000}]))
        .collect();
    let (conversation, _) = remote.stack().ask(&json!(calls).to_string()).await;
    let results = remote.results_of(&conversation).await;
    assert_eq!(results.len(), CALLS);
    for result in &results {
        assert_eq!(result["truncated"], true, "{result}");
    }
    let events = remote.stack().events(&conversation).await;
    let observe = events.iter().find(|it| it["event_type"] == "observe");
    let id = observe.unwrap()["event_data"]["execution_id"].as_str();
    let path = format!(
        "/conversations/{conversation}/tool-executions/{}/result",
        id.unwrap()
    );
    let whole = remote.stack().get(&path).await;
    assert!(whole["total_bytes"].as_u64().unwrap() > 900_000, "{whole}");
    let described = remote.stack().workflow_status(&conversation, "COMPLETED");
    let described = described.await;
    let history = described["workflowExecutionInfo"]["historySizeBytes"].as_str();
    let history: usize = history.unwrap().parse().unwrap();
    assert!(history < CALLS * 4096, "{history} bytes of history");
}

#[tokio::test]
async fn a_reset_starts_no_python_tool_again_that_runs_once() {
    let remote = Remote::new().await;
    let _running = remote.stack().start().await;
    // When the statement has ended, a workflow task has completed after the transfer was scheduled. So the second reset
    // keeps the activity of the transfer.
    let calls = r#"[["transfer", {"amount": 5, "seconds": 600}], ["statement", {}]]"#;
    let conversations = [
        remote.stack().ask(calls).await.0,
        remote.stack().ask(calls).await.0,
    ];
    let _python = remote.tools.worker_for(4).await;
    remote.booked(2).await;
    for (conversation, to) in conversations
        .iter()
        .zip(["FirstWorkflowTask", "LastWorkflowTask"])
    {
        remote.stack().saw(conversation, "observe").await;
        remote.reset(conversation, to).await;
        let results = remote.results_of(conversation).await;
        assert!(
            error(&results[0]).contains("may or may not have had its effect"),
            "{to}: {results:#?}"
        );
        assert_eq!(remote.begun(), 2, "{to}: {:?}", remote.tools.ledger());
    }
}
