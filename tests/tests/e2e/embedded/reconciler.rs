//! What was accepted and has stalled goes on without anyone asking.

use everturn_proto::words::{DEFAULT_TENANT, FailureCode};
use everturn_store::{Access, MessageCancel};
use everturn_tests::{
    events::{contents, count, types},
    model::{Model, Reply, Request},
    outage::Outage,
    stack::Stack,
    temporal::Temporal,
    wait,
};
use serde_json::{Value, json};

/// What has stalled for two seconds is looked at.
pub(super) const QUICK: &str = "[reconciler]\nevery = \"500ms\"\ngrace = \"2s\"\nagain = \"2s\"\n";

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

/// A stack with a Temporal server of its own, which the test may stop.
async fn with_own_engine(model: Model) -> (Stack, &'static Temporal) {
    let mut stack = Stack::new(model).await;
    let temporal = stack.move_to_own_temporal().await;
    stack.configure(QUICK);
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
            contents(&events, "user_message"),
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

/// A gateway stores a cancel, and dies before the signal. The call of the model is quiet for as long as the test wants.
#[tokio::test]
async fn a_cancel_whose_signal_was_lost_ends_a_quiet_call() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("So f").held()).await).await;
    stack.configure(QUICK);
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("hello").await;
    stack.asked(1).await;
    let store = stack.store().await;
    let (access, reason) = (Access::tenant(DEFAULT_TENANT), "nobody rang");
    let cancel = store
        .messages
        .cancel_message(&access, &conversation, &message, reason);
    assert_eq!(cancel.await.unwrap(), MessageCancel::Running);
    let events = stack.ended(&conversation, 1).await;
    let cancelled = events.last().unwrap();
    assert_eq!(cancelled["event_type"], "cancelled", "{events:#?}");
    assert_eq!(cancelled["event_data"]["reason"], reason);
    assert_eq!(stack.model.requests().len(), 1);
}

#[tokio::test]
async fn a_terminated_turn_ends_when_it_is_not_to_be_resumed() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("So f").held()).await).await;
    // The attempt hears with a heartbeat that its workflow is gone, and then stores the text so far. The grace of the
    // defaults is longer than the time between two heartbeats.
    stack.configure("[reconciler]\nevery = \"500ms\"\nlost_turns = \"end\"\n");
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    stack.terminate(&conversation).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        story(&events),
        [
            "user_message",
            "assistant_message",
            FailureCode::TurnLost.as_str()
        ]
    );
}

/// `bench outage` sends far more messages.
#[tokio::test]
async fn what_was_sent_while_the_engine_was_away_is_answered_in_order() {
    const CONVERSATIONS: usize = 20;
    const MESSAGES: usize = 4;
    // So few that a round through all conversations takes ten seconds.
    const CALLS_PER_SECOND: u32 = 8;
    let tables = format!("{QUICK}calls_per_second = {CALLS_PER_SECOND}\n");
    let outage = Outage::start(&tables, CONVERSATIONS).await;
    let statuses = outage.send(MESSAGES).await;
    assert_eq!(
        statuses,
        [503; CONVERSATIONS * MESSAGES],
        "it is stored, and nobody was told"
    );
    let drained = outage.drain(MESSAGES).await;
    for events in &drained.events {
        assert_eq!(contents(events, "user_message"), ["0", "1", "2", "3"]);
        assert_eq!(count(events, "complete"), MESSAGES);
    }
    assert_eq!(
        outage.stack.model.requests().len(),
        CONVERSATIONS * MESSAGES
    );
    assert!(
        drained.most_a_second <= f64::from(CALLS_PER_SECOND) + 0.5,
        "{} calls a second",
        drained.most_a_second
    );
    let least = u64::try_from(2 * CONVERSATIONS).unwrap();
    assert!(drained.calls >= least, "each is looked at and started");
}
