//! The limits of a provider: a burst of turns waits for them, a cancel reaches a call that waits, and the waiting calls
//! leave slots to the calls of other providers.

use std::time::{Duration, Instant};

use everturn_tests::{
    events::{count, types},
    model::{CallUsage, Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::json;

use crate::embedded::health::Probes;

const TURNS: usize = 8;
const AT_ONCE: usize = 2;

#[tokio::test]
async fn a_burst_of_turns_waits_and_a_cancel_ends_the_wait() {
    let model = Model::start(|_| Reply::text("Here it is.").held()).await;
    let stack = Stack::new(model).await;
    stack.configure(&format!(
        "[providers.limited]\nkind = \"openai\"\nbase_url = \"{}\"\nmax_concurrent_calls = {AT_ONCE}\n\
         requests_per_minute = 1000\n[agents.limited]\nprovider = \"limited\"\nmodel = \"m\"\nllm_timeout = \"1h\"\n",
        stack.model.base_url()
    ));
    let _gateway = stack.gateway().await;
    let probes = Probes::free();
    let _worker = probes.spawn(&stack, &["worker"], &[]);
    let client = stack.client();
    let mut conversations = Vec::new();
    for turn in 0..TURNS {
        let conversation = client.create_conversation(Some("limited")).await.unwrap();
        let message = format!("turn {turn}");
        client.submit(&conversation, &message, None).await.unwrap();
        conversations.push(conversation);
    }
    let waiting = |count: usize| {
        let probes = &probes;
        async move {
            let line = format!("everturn_model_calls_waiting{{provider=\"limited\"}} {count}\n");
            wait::until(&line, || async {
                probes.text().await?.contains(&line).then_some(())
            })
            .await;
        }
    };
    waiting(TURNS - AT_ONCE).await;
    let held = stack.model.requests();
    let held: Vec<_> = held.iter().map(|request| request.last("user")).collect();
    assert_eq!(held.len(), AT_ONCE);

    let is_waiting = |turn: &usize| !held.contains(&format!("turn {turn}"));
    let cancelled = conversations.remove((0..TURNS).rfind(is_waiting).unwrap());
    let path = format!("/conversations/{cancelled}/cancel");
    assert_eq!(stack.post(&path, &json!({})).await.0, 202);
    let events = stack.ended(&cancelled, 1).await;
    assert_eq!(count(&events, "cancelled"), 1, "{events:#?}");

    stack.model.release();
    for conversation in &conversations {
        let events = stack.ended(conversation, 1).await;
        assert_eq!(types(&events), "user_message assistant_message complete");
    }
    waiting(0).await;
    assert_eq!(stack.model.requests().len(), TURNS - 1);
}

/// What each call takes of the limit.
const TAKEN: CallUsage = CallUsage {
    input_tokens: 50,
    output_tokens: 50,
    cached_tokens: 0,
    reasoning_tokens: 0,
};

#[tokio::test]
async fn calls_take_what_they_took_of_the_tokens_of_a_minute() {
    // An answer may have 600 tokens, so two calls that are being made do not fit. Once answered, each took 100.
    let model = Model::start(|_| Reply::text("Here it is.").taking(TAKEN).held()).await;
    let stack = Stack::new(model).await;
    stack.configure(&format!(
        "[providers.limited]\nkind = \"openai\"\nbase_url = \"{}\"\ntokens_per_minute = 1100\n\
         [agents.limited]\nprovider = \"limited\"\nmodel = \"m\"\nllm_timeout = \"1h\"\nmax_output_tokens = 600\n",
        stack.model.base_url()
    ));
    let _gateway = stack.gateway().await;
    let probes = Probes::free();
    let _worker = probes.spawn(&stack, &["worker"], &[]);
    let client = stack.client();
    let mut conversations = Vec::new();
    for turn in ["first", "second"] {
        let conversation = client.create_conversation(Some("limited")).await.unwrap();
        client.submit(&conversation, turn, None).await.unwrap();
        conversations.push(conversation);
    }
    let line = "everturn_model_calls_waiting{provider=\"limited\"} 1\n";
    wait::until(line, || async {
        probes.text().await?.contains(line).then_some(())
    })
    .await;
    stack.asked(1).await;
    assert_eq!(stack.model.requests().len(), 1);
    let begun = Instant::now();
    stack.model.release();
    for conversation in &conversations {
        stack.ended(conversation, 1).await;
    }
    // Without the correction, the second call would have waited until the minute of the first one was over.
    assert!(
        begun.elapsed() < Duration::from_secs(50),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(stack.model.requests().len(), 2);
}

/// The waiting turns, on a worker with two slots.
const MANY: usize = 8;

#[tokio::test]
async fn calls_that_wait_for_a_provider_leave_slots_to_another_provider() {
    let model = Model::start(|request: &Request| {
        let reply = Reply::text("Here it is.");
        if request.last("user").starts_with("limited") {
            reply.held()
        } else {
            reply
        }
    });
    let stack = Stack::new(model.await).await;
    stack.configure(&format!(
        "[providers.limited]\nkind = \"openai\"\nbase_url = \"{}\"\nmax_concurrent_calls = 1\n\
         [agents.limited]\nprovider = \"limited\"\nmodel = \"m\"\nllm_timeout = \"1h\"\n\
         [worker]\nmax_concurrent_activities = 2\nprovider_wait = \"1s\"\n",
        stack.model.base_url()
    ));
    let _gateway = stack.gateway().await;
    let probes = Probes::free();
    let _worker = probes.spawn(&stack, &["worker"], &[]);
    let client = stack.client();
    let mut waiting = Vec::new();
    for turn in 0..MANY {
        let conversation = client.create_conversation(Some("limited")).await.unwrap();
        let message = format!("limited {turn}");
        client.submit(&conversation, &message, None).await.unwrap();
        waiting.push(conversation);
    }
    // One call runs in one slot, and another call waits in the other slot.
    stack.asked(1).await;
    let line = "everturn_model_calls_waiting{provider=\"limited\"} 1\n";
    wait::until(line, || async {
        probes.text().await?.contains(line).then_some(())
    })
    .await;
    let (free, _) = stack.ask("free").await;
    let events = stack.ended(&free, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    let asked: Vec<_> = stack.model.requests();
    let asked: Vec<_> = asked.iter().map(|request| request.last("user")).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");

    // A cancel ends a wait between two attempts, too.
    let is_running = |turn: &usize| asked.contains(&format!("limited {turn}"));
    let cancelled = waiting.remove((0..MANY).rfind(|turn| !is_running(turn)).unwrap());
    let path = format!("/conversations/{cancelled}/cancel");
    assert_eq!(stack.post(&path, &json!({})).await.0, 202);
    let events = stack.ended(&cancelled, 1).await;
    assert_eq!(count(&events, "cancelled"), 1, "{events:#?}");

    stack.model.release();
    for conversation in &waiting {
        let events = stack.ended(conversation, 1).await;
        assert_eq!(types(&events), "user_message assistant_message complete");
        assert_eq!(scheduled(&stack, conversation).await, 1);
    }
    assert_eq!(stack.model.requests().len(), MANY, "no call is made twice");
}

/// Returns the number of activities in the history of a conversation. The attempts of an activity add no events.
async fn scheduled(stack: &Stack, conversation: &str) -> usize {
    let history = stack.history(conversation).await;
    let activities = history
        .iter()
        .filter(|event| event["eventType"] == "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED");
    activities.count()
}
