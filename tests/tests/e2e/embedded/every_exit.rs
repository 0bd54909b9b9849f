//! A save that fails for good, in the middle of a turn: the turn ends, and its readers are told why.

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

use crate::embedded::approvals::{ASKING, answer, pending};

/// Saves that are refused: the conversation, and which of its rows.
const REFUSED: [(&str, &str); 4] = [
    ("refuses_thought", "NEW.batch_key LIKE '%/thought'"),
    ("refuses_approval", "NEW.batch_key LIKE '%/approval/%'"),
    ("refuses_observe", "NEW.batch_key LIKE '%/observe/%'"),
    (
        "refuses_steer",
        "NEW.event_type = 'user_message' AND NEW.sequence_number > 1",
    ),
];

/// A model that asks for a tool, which needs an approval in one conversation, and stays silent in another one.
fn script(request: &Request) -> Reply {
    match (request.last("user").as_str(), request.results_since_user()) {
        ("refuses_approval", 0) => {
            Reply::text("May I?").call("test_once", &json!({"effect": true}))
        }
        ("refuses_steer", 0) => {
            Reply::text("Slowly.").call("test_read", &json!({"sleep_ms": 1500}))
        }
        (_, 0) => Reply::text("I look.").call("test_read", &json!({})),
        _ => Reply::text("Done."),
    }
}

#[tokio::test]
async fn a_turn_that_cannot_be_saved_ends_with_an_error() {
    let stack = Stack::with_agent(Model::start(script).await, ASKING).await;
    let _running = stack.start().await;
    for (conversation, rows) in REFUSED {
        stack.refuse_events(conversation, rows).await;
        let created = stack
            .post("/conversations", &json!({"id": conversation}))
            .await;
        assert_eq!(created.0, 201);
        let body = json!({"content": conversation});
        assert_eq!(stack.send(conversation, &body).await.0, 202);
    }
    wait::until("the steered turn runs its tool", || async {
        let events = stack.events("refuses_steer").await;
        (events.len() >= 3).then_some(())
    })
    .await;
    let steer = json!({"content": "and this", "on_busy": "steer"});
    assert_eq!(stack.send("refuses_steer", &steer).await.0, 202);
    let call = pending(&stack, "refuses_approval", 1).await;
    answer(
        &stack,
        "refuses_approval",
        &call[0],
        json!({"decision": "approve"}),
    )
    .await;
    for (conversation, _) in REFUSED {
        let events = stack.ended(conversation, 1).await;
        let last = events.last().unwrap();
        assert_eq!(last["event_type"], "error", "{events:#?}");
        assert_eq!(last["event_data"]["code"], "internal");
        let of_type = |event_type: &str| {
            let of_type = |event: &&Value| event["event_type"] == event_type;
            events.iter().filter(of_type).count()
        };
        assert_eq!(of_type("act"), of_type("observe"), "{events:#?}");
    }
}
