//! A provider that is away for minutes while turns run: every turn ends well, no answer is paid twice, and readers learn
//! why their turn waits.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use everturn_client::GatewayClient;
use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
};
use futures::{StreamExt, future::join_all};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

/// How long the provider is away. Half of the default patience.
const AWAY: Duration = Duration::from_mins(5);
/// The load before the outage, and after it.
const AROUND: Duration = Duration::from_secs(10);
/// The turns of the load, which begin at equal distances.
const TURNS: u32 = 120;
/// The calls that a turn needs: one that asks for a tool, and one that answers.
const STEPS: usize = 2;
/// Longer than the longest pause between two calls of a step, which is 30 s, on a busy machine.
const BACK: Duration = Duration::from_mins(2);

/// What the provider has done.
#[derive(Default)]
struct Provider {
    is_away: AtomicBool,
    refused: AtomicUsize,
    answered: AtomicUsize,
}

impl Provider {
    fn answer(&self, request: &Request) -> Reply {
        if self.is_away.load(Ordering::Relaxed) {
            return match self.refused.fetch_add(1, Ordering::Relaxed) % 3 {
                0 => Reply::error(503, "unavailable"),
                1 => Reply::error(529, "overloaded_error"),
                _ => Reply::error(429, "rate_limited"),
            };
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        match request.results_since_user() {
            0 => Reply::text("Let me see.").call("calculate", &json!({"expression": "21 * 2"})),
            _ => Reply::text("It is 42."),
        }
    }
}

/// A turn of the load.
struct Asked {
    conversation: String,
    began: Instant,
    ended: Instant,
    /// The frames `model_waiting` that the reader got.
    waits: Vec<Value>,
}

/// Sends a message at this time, and follows its turn to the end.
async fn turn(stack: &Stack, begins: Instant) -> Asked {
    sleep_until(begins).await;
    let client = stack.client();
    let conversation = client.create_conversation(None).await.unwrap();
    let (waits, sent) = tokio::join!(
        waits(&client, &conversation),
        client.submit(&conversation, "go", None)
    );
    sent.unwrap();
    Asked {
        waits,
        conversation,
        began: begins,
        ended: Instant::now(),
    }
}

/// Follows a turn to its end, and returns its frames `model_waiting`.
async fn waits(client: &GatewayClient, conversation: &str) -> Vec<Value> {
    let mut frames = pin!(client.follow(conversation, 0));
    let mut waits = Vec::new();
    while let Some(frame) = frames.next().await {
        match frame.event.as_str() {
            "model_waiting" => waits.push(frame.data),
            "complete" | "turn_error" => return waits,
            _ => {}
        }
    }
    panic!("the stream has ended before the turn")
}

/// What the test saw of the outage.
struct Outage {
    gone: Instant,
    back: Instant,
    /// The field `waiting` of the status of every running turn, near the end of the outage.
    waiting: Vec<Value>,
}

/// Takes the provider away for a while.
async fn outage(stack: &Stack, provider: &Provider, away: Duration) -> Outage {
    sleep(AROUND).await;
    provider.is_away.store(true, Ordering::Relaxed);
    let gone = Instant::now();
    sleep(away * 9 / 10).await;
    let list = stack.get("/conversations?limit=100").await;
    let mut waiting = Vec::new();
    for conversation in list["conversations"].as_array().unwrap() {
        let id = conversation["id"].as_str().unwrap();
        let path = format!("/conversations/{id}/execution-status");
        let status = stack.get(&path).await;
        if status["is_running"] == true {
            waiting.push(status["waiting"].clone());
        }
    }
    sleep(away / 10).await;
    provider.is_away.store(false, Ordering::Relaxed);
    Outage {
        gone,
        back: Instant::now(),
        waiting,
    }
}

/// Runs the load with an outage of this length.
async fn load(away: Duration) {
    let provider = Arc::<Provider>::default();
    let answers = Arc::clone(&provider);
    let model = Model::start(move |request: &Request| answers.answer(request)).await;
    // One process, so that the frames reach the readers without Redis.
    let stack = Stack::new(model).await.with_gateways(1);
    let _all = stack.all_in_one().await;
    let start = Instant::now();
    let distance = (away + 2 * AROUND) / TURNS;
    let turns = (0..TURNS).map(|number| turn(&stack, start + distance * number));
    let (asked, outage) = tokio::join!(join_all(turns), outage(&stack, &provider, away));
    let Outage {
        gone,
        back,
        waiting,
    } = outage;

    let refused = provider.refused.load(Ordering::Relaxed);
    assert!(refused > 100, "{refused} calls were refused");
    let told = waiting.iter().filter(|it| it["code"].is_string()).count();
    assert!(
        told > 10 && told * 2 > waiting.len(),
        "{told} of {waiting:#?}"
    );
    for turn in &asked {
        let events = stack.events(&turn.conversation).await;
        assert_eq!(
            types(&events),
            "user_message thought act observe assistant_message complete",
            "{events:#?}"
        );
        // A turn that began well inside of the outage had to wait for the provider.
        let margin = Duration::from_secs(5);
        if turn.began > gone && turn.began + margin < back {
            assert!(!turn.waits.is_empty(), "nobody was told of the wait");
            let after = turn.ended.checked_duration_since(back);
            assert!(after.is_some_and(|after| after < BACK), "{after:?}");
        }
    }
    let answered = provider.answered.load(Ordering::Relaxed);
    assert_eq!(answered, asked.len() * STEPS, "paid calls are answers");
    let usage = stack.get_api("/api/v1/usage?by=agent").await;
    let row = &usage["usage"][0];
    assert_eq!(
        [&row["calls"], &row["cut_calls"]],
        [&json!(answered), &json!(0)]
    );
}

#[tokio::test]
async fn a_provider_that_is_away_for_minutes_costs_no_turn_and_no_call() {
    load(AWAY).await;
}
