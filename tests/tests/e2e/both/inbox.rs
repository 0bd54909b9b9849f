//! The store is the only inbox: what a person has asked for outlives the signals, the runs and the outages of the engine
//! (invariant 9, accepted means durable).

use everturn_tests::{
    events::{contents, types},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;

use super::resume::{resume, terminate};

fn echo(request: &Request) -> Reply {
    Reply::text(&format!("You said {}.", request.last("user")))
}

/// The first answer never ends. Later calls are answered at once.
fn stuck_at_first(request: &Request) -> Reply {
    match request.number {
        1 => Reply::text("I was saying").held(),
        _ => echo(request),
    }
}

async fn submit(stack: &Stack, conversation: &str, content: &str, on_busy: &str) -> String {
    let body = json!({"content": content, "on_busy": on_busy});
    let (status, answer) = stack.send(conversation, &body).await;
    assert_eq!(status, 202, "{answer}");
    answer["message_id"].as_str().unwrap().to_owned()
}

async fn cancel(stack: &Stack, conversation: &str, message_id: &str) -> String {
    let path = format!("/conversations/{conversation}/cancel");
    let body = json!({"message_id": message_id});
    let (status, answer) = stack.post(&path, &body).await;
    assert_eq!(status, 202, "{answer}");
    answer["status"].as_str().unwrap().to_owned()
}

/// The workflow dies with the signal. The message must not run when the conversation goes on.
#[tokio::test]
async fn an_accepted_cancel_survives_the_workflow() {
    let stack = Stack::new(Model::start(stuck_at_first).await).await;
    let (worker, _gateway) = stack.start_with_one_worker().await;
    let (conversation, first) = stack.ask("one").await;
    stack.asked(1).await;
    let second = submit(&stack, &conversation, "two", "queue").await;
    worker.kill().await;
    for message in [&second, &first] {
        assert_eq!(cancel(&stack, &conversation, message).await, "cancelling");
    }
    terminate(&stack, &conversation).await;
    let _worker = stack.worker();
    assert_eq!(resume(&stack, &conversation).await.0, 202);
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        types(&events),
        "user_message cancelled user_message cancelled"
    );
    assert_eq!(stack.model.requests().len(), 1, "no call after the cancels");

    submit(&stack, &conversation, "three", "queue").await;
    let events = stack.ended(&conversation, 3).await;
    let answers = contents(&events, "assistant_message");
    assert!(answers[0].ends_with("three."), "{answers:?}");
    let requests = stack.model.requests();
    let last = requests.last().unwrap();
    assert!(
        !last.body["messages"].to_string().contains("two"),
        "a withdrawn message reaches no model"
    );
}

/// The policy is the message's, and not the signal's.
#[tokio::test]
async fn an_interrupt_interrupts_a_turn_that_is_resumed() {
    let stack = Stack::new(Model::start(stuck_at_first).await).await;
    let (worker, _gateway) = stack.start_with_one_worker().await;
    let (conversation, _) = stack.ask("one").await;
    stack.asked(1).await;
    worker.kill().await;
    terminate(&stack, &conversation).await;
    submit(&stack, &conversation, "now", "interrupt").await;
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(contents(&events, "user_message"), ["one", "now"]);
    let ends = types(&events);
    assert!(ends.contains("cancelled"), "{ends}");
    assert_eq!(
        stack.model.requests().len(),
        2,
        "the first turn makes no further call"
    );
}

/// "Pay Bob", then "no, pay Alice": Bob is not paid.
#[tokio::test]
async fn a_newer_interrupt_ends_the_older_one() {
    let stack = Stack::new(Model::start(stuck_at_first).await).await;
    let (worker, _gateway) = stack.start_with_one_worker().await;
    let (conversation, _) = stack.ask("one").await;
    stack.asked(1).await;
    worker.pause();
    submit(&stack, &conversation, "pay Bob", "interrupt").await;
    submit(&stack, &conversation, "no, pay Alice", "interrupt").await;
    worker.resume();
    let events = stack.ended(&conversation, 3).await;
    let asked = contents(&events, "user_message");
    assert_eq!(asked, ["one", "pay Bob", "no, pay Alice"]);
    let reasons: Vec<_> = events
        .iter()
        .filter(|event| event["event_type"] == "cancelled")
        .map(|event| event["event_data"]["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["interrupted by a newer message"; 2]);
    let answers = contents(&events, "assistant_message");
    assert_eq!(*answers.last().unwrap(), "You said no, pay Alice.");
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn repeated_requests_leave_no_trace_in_the_history() {
    let stack = Stack::new(Model::start(stuck_at_first).await).await;
    let _running = stack.start_with_one_worker().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let body = json!({"content": "one", "message_id": "mine"});
    let (_, sent) = stack.send(&conversation, &body).await;
    stack.asked(1).await;
    let waiting = json!({"content": "two", "message_id": "waits"});
    stack.send(&conversation, &waiting).await;
    stack.send(&conversation, &waiting).await;
    // The look that the second message asks for has ended.
    stack
        .has_in_history(&conversation, "MARKER_RECORDED", 2)
        .await;
    let before = stack.history(&conversation).await.len();
    for _repeated in 0..20 {
        assert_eq!(stack.send(&conversation, &body).await.0, 202);
        assert_eq!(stack.send(&conversation, &waiting).await.0, 202);
        assert_eq!(
            cancel(&stack, &conversation, "unknown").await,
            "not_running"
        );
    }
    assert_eq!(stack.history(&conversation).await.len(), before);
    let first = sent["message_id"].as_str().unwrap();
    assert_eq!(cancel(&stack, &conversation, first).await, "cancelling");
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        contents(&events, "assistant_message"),
        ["I was saying", "You said two."]
    );
}
