//! Backends that fail while a turn runs. The turn completes, no event is lost or stored twice, and a connected reader
//! ends with exactly what a new reader gets. Each test has a PostgreSQL and a Redis of its own to break.

use std::time::Duration;

use everturn_client::Frame;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

/// Script of a model that calls three tools one after the other, then streams an answer for a while.
fn busy(request: &Request) -> Reply {
    match request.results_since_user() {
        n @ 0..3 => Reply::text("One more.")
            .call("test_read", &json!({"effect": true, "sleep_ms": 300 + n})),
        _ => Reply::tokens(2_000),
    }
}

/// What is done to a backend while the turn runs.
enum Harm {
    RestartPostgresGently,
    RestartPostgresAtOnce,
    CutConnections,
    RestartRedis,
    KillRedis,
    FlushRedis,
    SlowRedis,
}

impl Harm {
    async fn done(self, stack: &Stack, conversation: &str) {
        match self {
            Self::RestartPostgresGently => {
                stack.saw(conversation, "act").await;
                stack.postgres().restart_fast().await;
            }
            Self::RestartPostgresAtOnce => {
                stack.saw(conversation, "observe").await;
                stack.postgres().restart_immediate().await;
            }
            Self::CutConnections => {
                stack.saw(conversation, "user_message").await;
                // This is often enough to hit commits. The sleep is a pause, and waits for nothing.
                for _ in 0..40 {
                    stack.postgres().terminate_backends().await;
                    tokio::time::sleep(Duration::from_millis(25)).await;
                }
            }
            Self::RestartRedis => {
                stack.saw(conversation, "act").await;
                stack.redis().kill().await;
                stack.asked(3).await;
                stack.redis().start_again().await;
            }
            Self::KillRedis => {
                stack.saw(conversation, "act").await;
                stack.redis().kill().await;
            }
            Self::FlushRedis => {
                stack.asked(4).await;
                for _ in 0..5 {
                    stack.redis().flush().await;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            Self::SlowRedis => {
                stack.saw(conversation, "act").await;
                stack.redis().slow(Duration::from_secs(2)).await;
            }
        }
    }
}

/// Runs a turn, breaks a backend while it runs, and compares what a connected reader saw with a new replay.
async fn survives(harm: Harm) {
    let stack = Stack::breakable(Model::start(busy).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("work").await;
    let live = stack.frames_until(&conversation, 0, |frame| frame.event == "complete");
    let (live, ()) = tokio::join!(live, harm.done(&stack, &conversation));
    let events = stack.ended(&conversation, 1).await;
    let types: Vec<_> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    let step = "thought act observe";
    let expected = format!("user_message {step} {step} {step} assistant_message complete");
    assert_eq!(types.join(" "), expected);
    let replayed = stack
        .frames_until(&conversation, 0, |frame| frame.event == "complete")
        .await;
    assert_eq!(
        persisted(&live),
        persisted(&replayed),
        "live and replayed differ"
    );
    assert_eq!(assembled(&live), assembled(&replayed));
    let answer = events[events.len() - 2]["event_data"]["content"]
        .as_str()
        .unwrap();
    assert_eq!(answer.split_whitespace().count(), 2_000);
    assert_eq!(stack.model.requests().len(), 4, "no call is paid twice");
    assert_eq!(stack.effects().len(), 3, "no tool runs twice");
}

pub(crate) fn persisted(frames: &[Frame]) -> Vec<(u32, Value)> {
    frames
        .iter()
        .filter_map(|frame| Some((frame.id?, frame.data.clone())))
        .collect()
}

/// Returns the texts that a reader has at the end. A text that an event has sealed is the text of the event.
pub(crate) fn assembled(frames: &[Frame]) -> Vec<String> {
    let sealed = frames
        .iter()
        .filter(|frame| matches!(frame.event.as_str(), "thought" | "assistant_message"));
    sealed
        .map(|frame| {
            let text = frame.data["thought"].as_str();
            let text = text.or_else(|| frame.data["content"].as_str());
            text.unwrap().to_owned()
        })
        .collect()
}

#[tokio::test]
async fn postgres_restarted_gently() {
    survives(Harm::RestartPostgresGently).await;
}

#[tokio::test]
async fn postgres_restarted_at_once() {
    survives(Harm::RestartPostgresAtOnce).await;
}

#[tokio::test]
async fn connections_cut_again_and_again() {
    survives(Harm::CutConnections).await;
}

#[tokio::test]
async fn redis_killed_and_started_again() {
    survives(Harm::RestartRedis).await;
}

#[tokio::test]
async fn redis_killed_for_good() {
    survives(Harm::KillRedis).await;
}

#[tokio::test]
async fn redis_flushed_in_mid_message() {
    survives(Harm::FlushRedis).await;
}

#[tokio::test]
async fn redis_slow() {
    survives(Harm::SlowRedis).await;
}

#[tokio::test]
async fn deltas_reach_every_gateway_and_a_retry_supersedes_them() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("The first try is cut").cut(),
        _ => Reply::tokens(500),
    });
    let stack = Stack::breakable(model.await).await;
    let _running = stack.start().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    // Each client gets the next gateway, so the two readers are on two gateways.
    let is_last = |frame: &Frame| frame.event == "complete";
    let readers = async {
        tokio::join!(
            stack.frames_until(&conversation, 0, is_last),
            stack.frames_until(&conversation, 0, is_last)
        )
    };
    let submit = async {
        stack
            .client()
            .submit(&conversation, "hello", None)
            .await
            .unwrap()
    };
    let ((first, second), _) = tokio::join!(readers, submit);
    assert_eq!(persisted(&first), persisted(&second));
    for frames in [&first, &second] {
        let mut text = String::new();
        let mut deltas = 0;
        for frame in frames {
            match frame.event.as_str() {
                "text_start" => frame.data["text"].as_str().unwrap().clone_into(&mut text),
                "text_delta" => {
                    deltas += 1;
                    text += frame.data["text"].as_str().unwrap();
                }
                _ => {}
            }
        }
        assert!(deltas > 0, "no delta reached this gateway");
        let answer = &frames[frames.len() - 2].data["content"];
        assert_eq!(answer, text.as_str(), "what was streamed is what was saved");
    }
}
