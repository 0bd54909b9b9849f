//! Steps that would not fit the limits of one run: many large results, and a wait among many signals. The turn goes on in
//! a new run among the tools of its step (invariant 4, linear history).

use everturn_tests::{
    events::{data, types},
    model::{Model, Reply, Request},
    python::PythonTools,
    stack::Stack,
    temporal::LONG_HISTORY,
};
use futures::{StreamExt, stream};
use serde_json::json;

use everturn_gateway::turns::TurnStarter as _;

use crate::embedded::approvals::{answer, pending};

/// The most calls that a step has.
const CALLS: usize = 64;
/// Number of lines of the statement that are a MB together, nearly as large as a result may be.
const LARGE: usize = 49_000;

/// A model that books one transfer, then makes as many calls as a step can have. Each fourth result is large: as many as
/// four runs can have. Some of the inputs are large, too.
fn large(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("One to begin with.").call("transfer", &json!({"amount": 5})),
        1 => (0..CALLS).fold(Reply::text("All of them."), |reply, number| {
            let padding = if number < 3 {
                "x".repeat(200 * 1024)
            } else {
                String::new()
            };
            let copies = if number % 4 == 0 { LARGE } else { 1 };
            let input = json!({"copies": copies, "padding": padding, "number": number});
            reply.call("statement", &input)
        }),
        _ => Reply::text("Done."),
    }
}

#[tokio::test]
async fn large_results_of_a_whole_step_fit_the_engine() {
    let tools = PythonTools::new(Model::start(large).await).await;
    let _running = tools.stack.start().await;
    let (conversation, _) = tools.stack.ask("go").await;
    let _python = tools.worker_for(1).await;
    let described = tools.stack.workflow_status(&conversation, "COMPLETED");
    let described = described.await;
    let events = tools.stack.ended(&conversation, 1).await;
    let observes = data(&events, "observe");
    assert_eq!(observes.len(), 1 + CALLS);
    for observe in &observes[1..] {
        assert_eq!(observe["is_error"], false, "{observe}");
    }
    assert_eq!(events.last().unwrap()["event_type"], "complete");
    assert_eq!(
        tools.stack.model.requests().len(),
        3,
        "no call is paid twice"
    );
    assert_eq!(tools.ledger().len(), 1, "the transfer ran once");
    let execution = &described["workflowExecutionInfo"]["execution"]["runId"];
    let first = &described["workflowExecutionInfo"]["firstRunId"];
    assert_ne!(execution, first, "{described}");
}

const WAITING: &str = r#"
tools = [{ name = "test_once", approval = "always" }, "open_file"]

[client_tools.open_file]
description = "Reads a file of the user."
"#;

fn both(request: &Request) -> Reply {
    match request.number {
        1 => Reply::text("Both.")
            .call("test_once", &json!({"effect": true}))
            .call("open_file", &json!({})),
        _ => Reply::text(&format!("You said {}.", request.last("user"))),
    }
}

/// Signals that do nothing still are events. The engine ends a run with too many of them.
#[tokio::test]
async fn a_long_wait_goes_on_in_a_new_run() {
    let stack = Stack::with_agent(Model::start(both).await, WAITING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("one").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    stack.saw(&conversation, "client_tool_requested").await;
    let steer = json!({"content": "rather two", "on_busy": "steer"});
    assert_eq!(stack.send(&conversation, &steer).await.0, 202);
    let first = stack.run_id(&conversation).await;
    let turns = stack.turns().await;
    let mut number = 0;
    while stack.run_id(&conversation).await == first {
        let rings = stream::iter(number..number + 40).map(|number| {
            let (turns, conversation) = (&turns, &conversation);
            async move { turns.signal(conversation, &format!("other-{number}")).await }
        });
        let answers: Vec<_> = rings.buffer_unordered(8).collect().await;
        for answer in answers {
            assert!(answer.unwrap());
        }
        number += 40;
        assert!(
            number < 10 * LONG_HISTORY,
            "the run takes more and more events"
        );
    }
    assert_eq!(
        pending(&stack, &conversation, 1).await[0],
        call,
        "it waits as before"
    );
    let yes = json!({"decision": "approve"});
    let (status, body) = answer(&stack, &conversation, &call, yes).await;
    assert_eq!(status, 200, "{body}");
    let list = stack
        .get(&format!("/conversations/{conversation}/client-tools"))
        .await;
    let id = list["client_tools"][0]["execution_id"].as_str().unwrap();
    let result = format!("/conversations/{conversation}/client-tools/{id}");
    assert_eq!(stack.post(&result, &json!({"result": "text"})).await.0, 202);
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message thought act act approval_requested client_tool_requested approval_resolved observe observe \
         user_message assistant_message complete"
    );
    assert_eq!(events[10]["event_data"]["content"], "You said rather two.");
    assert_eq!(stack.effects().len(), 1);
    assert_eq!(stack.model.requests().len(), 2, "no call is paid twice");
}

/// A model that makes both calls in each conversation.
fn both_in_each(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("Both.")
            .call("test_once", &json!({}))
            .call("open_file", &json!({})),
        _ => Reply::text("Done."),
    }
}

/// What a ring adds to a history, with its workflow task and its look.
const EVENTS_OF_A_SIGNAL: usize = 5;

/// The answer is stored in the run whose history has just become long, while the client's call waits on. The caller hears
/// that it was taken before the next run begins.
#[tokio::test]
async fn an_answer_that_makes_the_history_long_is_taken() {
    let stack = Stack::with_agent(Model::start(both_in_each).await, WAITING).await;
    let _running = stack.start().await;
    // What an answer adds to the history differs by a few events, so it comes at each of these lengths.
    let asked = (1..=8).map(|left| {
        let stack = &stack;
        async move {
            let (conversation, _) = stack.ask("one").await;
            let call = pending(stack, &conversation, 1).await.remove(0);
            let turns = stack.turns().await;
            let mut length = stack.history(&conversation).await.len();
            for number in 0.. {
                if length + left + EVENTS_OF_A_SIGNAL > LONG_HISTORY {
                    break;
                }
                let other = format!("other-{number}");
                assert!(turns.signal(&conversation, &other).await.unwrap());
                length = stack.history(&conversation).await.len();
            }
            let yes = json!({"decision": "approve"});
            let (status, body) = answer(stack, &conversation, &call, yes).await;
            assert_eq!(status, 200, "at {length} events: {body}");
        }
    });
    futures::future::join_all(asked).await;
}
