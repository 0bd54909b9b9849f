//! What was accepted and has stalled goes on without anyone asking.

use everturn_proto::words::failure;
use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
    temporal::Temporal,
    wait,
};
use futures::future::join_all;
use serde_json::{Value, json};

/// What has stalled for two seconds is looked at.
const QUICK: &str = "[reconciler]\nevery = \"500ms\"\ngrace = \"2s\"\nagain = \"2s\"\n";

fn answer(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I change something.").call("test_once", &json!({"effect": true})),
        _ => Reply::tokens(20),
    }
}

/// The events by type; of an error, its code.
fn story(events: &[Value]) -> Vec<String> {
    let shown = events.iter().map(|event| {
        let code = event["event_data"]["code"].as_str();
        code.or(event["event_type"].as_str()).unwrap().to_owned()
    });
    shown.collect()
}

/// What the user said, in the order of the turns.
fn said(events: &[Value]) -> Vec<String> {
    let of_user = |event: &&Value| event["event_type"] == "user_message";
    let content = |event: &Value| event["event_data"]["content"].as_str().unwrap().to_owned();
    events.iter().filter(of_user).map(content).collect()
}

/// A stack with a Temporal server of its own, which the test may stop.
async fn with_own_engine(model: Model) -> (Stack, &'static Temporal) {
    let mut stack = Stack::new(model).await;
    stack.temporal = Box::leak(Box::new(Temporal::dev().await));
    stack.configure(QUICK);
    let temporal = stack.temporal;
    (stack, temporal)
}

#[tokio::test]
async fn an_engine_that_comes_back_empty_loses_no_message() {
    const CONVERSATIONS: usize = 8;
    let (stack, temporal) = with_own_engine(Model::start(answer).await).await;
    let _running = stack.start().await;
    let mut conversations = Vec::new();
    for number in 0..CONVERSATIONS {
        let id = stack.client().create_conversation(None).await.unwrap();
        for message in 0..2 {
            let body = json!({"content": format!("{number} {message}")});
            assert_eq!(stack.send(&id, &body).await.0, 202);
        }
        conversations.push(id);
    }
    wait::until("turns are at work", || async {
        (stack.model.requests().len() >= 3).then_some(())
    })
    .await;
    temporal.lose_everything().await;
    for (number, id) in conversations.iter().enumerate() {
        let events = stack.ended(id, 2).await;
        let ends = types(&events);
        assert_eq!(
            said(&events),
            [format!("{number} 0"), format!("{number} 1")]
        );
        assert_eq!(ends.matches("complete").count(), 2, "{events:#?}");
        assert_eq!(
            ends.matches("act").count(),
            ends.matches("observe").count(),
            "{ends}"
        );
    }
    assert_eq!(
        stack.effects().len(),
        2 * CONVERSATIONS,
        "every tool has run once"
    );
}

#[tokio::test]
async fn a_terminated_turn_goes_on_by_itself() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("This is as far as it c").held(),
        _ => Reply::text("The whole answer."),
    });
    let stack = Stack::new(model.await).await;
    stack.configure(QUICK);
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    stack.terminate(&conversation).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
}

#[tokio::test]
async fn a_terminated_turn_ends_when_it_is_not_to_be_resumed() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("So f").held()).await).await;
    stack.configure(&format!("{QUICK}lost_turns = \"end\"\n"));
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    stack.terminate(&conversation).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        story(&events),
        ["user_message", "assistant_message", failure::TURN_LOST]
    );
}

#[tokio::test]
async fn what_was_sent_while_the_engine_was_away_is_answered_in_order() {
    const CONVERSATIONS: usize = 10;
    const MESSAGES: usize = 4;
    let model = Model::start(|request: &Request| Reply::text(&request.last("user")));
    let (stack, temporal) = with_own_engine(model.await).await;
    let _running = stack.start().await;
    let mut conversations = Vec::new();
    for _ in 0..CONVERSATIONS {
        conversations.push(stack.client().create_conversation(None).await.unwrap());
    }
    temporal.stop().await;
    for message in 0..MESSAGES {
        let sends = conversations.iter().map(|id| {
            let body = json!({"content": message.to_string()});
            let stack = &stack;
            async move { stack.send(id, &body).await.0 }
        });
        let statuses = join_all(sends).await;
        assert_eq!(
            statuses, [503; CONVERSATIONS],
            "it is stored, and nobody was told"
        );
    }
    temporal.start_empty().await;
    for id in &conversations {
        let events = stack.ended(id, MESSAGES).await;
        assert_eq!(said(&events), ["0", "1", "2", "3"]);
        assert_eq!(types(&events).matches("complete").count(), MESSAGES);
    }
    assert_eq!(stack.model.requests().len(), CONVERSATIONS * MESSAGES);
}
