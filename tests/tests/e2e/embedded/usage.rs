//! Usage of a tenant: calls without an answer count also in turns without a budget, and tool calls count by tool.

use everturn_tests::{
    events::{count, data},
    model::{CallUsage, Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

const EACH: CallUsage = CallUsage {
    input_tokens: 2000,
    output_tokens: 500,
    cached_tokens: 1000,
    reasoning_tokens: 100,
};

/// Returns the only row of the sums by agent.
async fn by_agent(stack: &Stack) -> Value {
    let page = stack.get_api("/api/v1/usage?by=agent").await;
    let [row] = &page["usage"].as_array().unwrap()[..] else {
        panic!("one agent on one day: {page:#}")
    };
    assert_eq!(row["agent"], "default");
    row.clone()
}

/// A killed worker and a cancel cut a call; a refusal by the provider does not.
#[tokio::test]
async fn calls_without_an_answer_count() {
    let script = |request: &Request| match request.last("user").as_str() {
        "refuse" if request.number == 1 => Reply::error(429, "rate_limited"),
        "hold" => Reply::text("This much I have said.").held(),
        _ => Reply::text("Here you are.").taking(EACH),
    };
    let stack = Stack::with_agent(Model::start(script).await, "max_output_tokens = 1000").await;
    let _gateway = stack.gateway().await;
    let killed_at = "think.before_checkpoint";
    let worker = stack.worker_stopping_at(killed_at);
    let (conversation, _) = stack.ask("refuse").await;
    stack.reached(killed_at).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(count(&events, "complete"), 1, "{events:#?}");
    let row = by_agent(&stack).await;
    assert_eq!((&row["calls"], &row["cut_calls"]), (&json!(1), &json!(1)));
    assert_eq!(stack.model.requests().len(), 3, "refused, cut, answered");
    // The answer may have 1000 tokens, and the context has a few.
    let cut_tokens = row["cut_tokens"].as_u64().unwrap();
    assert!((1001..1200).contains(&cut_tokens), "{row:#}");
    let end = data(&events, "complete")[0];
    assert_eq!(
        (&end["cut_calls"], &end["cut_tokens"]),
        (&json!(1), &json!(cut_tokens))
    );

    let (conversation, _) = stack.ask("hold").await;
    stack.asked(4).await;
    let path = format!("/conversations/{conversation}/cancel");
    stack.post(&path, &json!({})).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(count(&events, "cancelled"), 1, "{events:#?}");
    let row = by_agent(&stack).await;
    assert_eq!((&row["calls"], &row["cut_calls"]), (&json!(1), &json!(2)));
    let end = data(&events, "cancelled")[0];
    assert_eq!(end["cut_calls"], 1, "{end:#}");
    let shown = stack.get(&format!("/conversations/{conversation}")).await;
    assert_eq!(shown["cut_calls"], 1, "{shown:#}");
    assert_eq!(shown["cut_tokens"], end["cut_tokens"]);
    let path = format!("/conversations/{conversation}/executions");
    let listed = stack.get(&path).await;
    assert_eq!(listed["executions"][0]["cut_calls"], 1, "{listed:#}");
}

/// The budget holds, although the provider counts no tokens.
#[tokio::test]
async fn the_estimate_counts_for_a_provider_without_a_count() {
    let script = |_: &Request| {
        Reply::text(&"x".repeat(400))
            .call("test_read", &json!({}))
            .taking(CallUsage::default())
    };
    let keys = "tools = [\"test_read\"]\nmax_output_tokens = 100\nmax_steps = 50\n\
                [agents.default.budget]\ntokens = 4000";
    let stack = Stack::with_agent(Model::start(script).await, keys).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    let end = data(&events, "error")[0];
    assert_eq!(end["code"], "budget_exhausted", "{end:#}");
    let usage = &end["usage"];
    let tokens: u64 = ["input_tokens", "output_tokens"]
        .iter()
        .map(|key| usage[key].as_u64().unwrap())
        .sum();
    assert!((2000..=4000).contains(&tokens), "{end:#}");
    assert_eq!(usage["estimated"], true);
    let row = by_agent(&stack).await;
    assert_eq!(&row["usage"], usage, "{row:#}");
}

/// A turn of two tool calls, with an error as the result of the second.
#[tokio::test]
async fn tool_calls_count_by_tool() {
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("I look.")
            .call("test_read", &json!({}))
            .call("calculate", &json!({"expression": "1/0"})),
        _ => Reply::text("Here you are."),
    };
    let keys = "tools = [\"test_read\", \"calculate\"]";
    let stack = Stack::with_agent(Model::start(script).await, keys).await;
    let _running = stack.start().await;
    for turn in 1..3 {
        let (conversation, _) = stack.ask("look").await;
        stack.ended(&conversation, 1).await;
        let page = stack.get_api("/api/v1/usage?by=tool&agent=default").await;
        assert_eq!(
            (&page["usage"], &page["next_after"]),
            (&json!([]), &json!(null))
        );
        let rows = page["tools"].as_array().unwrap();
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row["tool"].as_str(),
                    row["calls"].as_u64(),
                    row["failed_calls"].as_u64(),
                )
            })
            .collect();
        let expected = [("calculate", turn, turn), ("test_read", turn, 0)];
        let expected =
            expected.map(|(tool, calls, failed)| (Some(tool), Some(calls), Some(failed)));
        assert_eq!(rows, expected, "{page:#}");
    }
}
