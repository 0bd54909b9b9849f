//! Counts the rows and the history events of a turn (invariant 4, linear history).

use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    temporal::LONG_HISTORY,
    wait,
};
use serde_json::{Value, json};

use crate::both::turn::two_tools;

#[tokio::test]
async fn a_turn_of_1000_tokens_and_one_tool_writes_few_rows() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("I need a tool.").call("calculate", &json!({"expression": "1 + 1"})),
        _ => Reply::tokens(1000),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("say much").await;
    let events = stack.ended(&conversation, 1).await;
    let types: Vec<_> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "user_message",
            "thought",
            "act",
            "observe",
            "assistant_message",
            "complete"
        ]
    );
    let answer = events[4]["event_data"]["content"].as_str().unwrap();
    assert_eq!(answer.split_whitespace().count(), 1000);
    let timeline = stack
        .get(&format!("/conversations/{conversation}/messages"))
        .await;
    assert_eq!(timeline["total"], 5);

    let mut rows = stack.rows().await;
    // The tenant's day, which all its turns share.
    assert!(rows.contains(&("usage_days".to_owned(), 1)), "{rows:?}");
    assert!(
        rows.contains(&("tool_usage_days".to_owned(), 1)),
        "{rows:?}"
    );
    // A lease is a worker's, and the version of a list is of all its conversations.
    let of_others = [
        "usage_days",
        "tool_usage_days",
        "worker_leases",
        "list_changes",
    ];
    rows.retain(|(table, _)| !of_others.contains(&table.as_str()));
    let total: i64 = rows.iter().map(|(_, count)| count).sum();
    assert!(total <= 20, "{total} rows: {rows:?}");
    assert!(
        rows.contains(&("agent_execution_events".to_owned(), 6)),
        "{rows:?}"
    );
    // Two replies, and a checkpoint before and one after the tool.
    assert!(
        rows.contains(&("execution_checkpoints".to_owned(), 4)),
        "{rows:?}"
    );
}

#[tokio::test]
async fn a_turn_of_two_steps_has_a_short_history() {
    let ordinary = |request: &Request| match request.results_since_user() {
        0 => Reply::text("I need two tools.")
            .call("test_read", &json!({}))
            .call("test_read", &json!({})),
        _ => Reply::text("It is 42 and late."),
    };
    has_a_short_history(Model::start(ordinary).await, 33).await;
    has_a_short_history(Model::start(two_tools).await, 27).await;
}

/// Runs a turn, which may have so many history events.
async fn has_a_short_history(model: Model, most_events: usize) {
    let stack = Stack::new(model).await;
    let _running = stack.start().await;
    // The message is long, and makes no difference: texts, arguments and results are not in the history.
    let (conversation, _) = stack
        .ask(&format!(
            "What is 21 * 2, and the time? {}",
            "x".repeat(20_000)
        ))
        .await;
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    let events = stack.history(&conversation).await;
    assert!(
        events.len() <= most_events,
        "{} events: {:?}",
        events.len(),
        kinds(&events)
    );
    let workflow_id = ids::workflow_id(&conversation);
    let described = stack.temporal.describe(&workflow_id).await;
    let bytes: u64 = described["workflowExecutionInfo"]["historySizeBytes"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(bytes < 7 * 1024, "{bytes} bytes of history");
    println!(
        "a two-step turn: {} history events, {bytes} bytes",
        events.len()
    );
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["eventType"].as_str().unwrap_or("?"))
        .collect()
}

#[tokio::test]
async fn a_long_turn_goes_on_in_a_new_run() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0..15 => Reply::text("Again.").call("test_read", &json!({"effect": true})),
        _ => Reply::text("At last."),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("work long").await;
    stack.asked(3).await;
    stack
        .client()
        .submit(&conversation, "and then this", None)
        .await
        .unwrap();
    let events = stack.ended(&conversation, 2).await;
    let of_turn = events
        .iter()
        .filter(|event| event["message_id"] == message.as_str());
    assert_eq!(
        of_turn.count(),
        1 + 15 * 3 + 2,
        "one turn, nothing lost or doubled in between"
    );
    assert_eq!(
        stack.effects().len(),
        2 * 15,
        "two turns of 15 tools, each run once"
    );
    stack.workflow_status(&conversation, "COMPLETED").await;
    let workflow_id = ids::workflow_id(&conversation);
    let query = format!("WorkflowId=\"{workflow_id}\"");
    let runs = wait::until("all runs are listed", || async {
        let runs = stack.temporal.list(&query).await;
        (runs.len() >= 3).then_some(runs)
    })
    .await;
    for run in &runs {
        let length: usize = run["historyLength"]
            .as_str()
            .unwrap_or("0")
            .parse()
            .unwrap();
        assert!(length < LONG_HISTORY + 40, "a run of {length} events");
        assert!(
            run["searchAttributes"].to_string().contains("AgentName"),
            "{run}"
        );
    }
}
