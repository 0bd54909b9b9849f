//! Redis comes back after an outage, in the middle of a text: live text soon flows again on every gateway.

use std::{
    future::ready,
    time::{Duration, Instant},
};

use everturn_client::GatewayClient;
use everturn_tests::{
    model::{Model, Reply},
    stack::Stack,
};
use futures::StreamExt;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// The best of these counts, because other programs may hold this machine up during one of them.
const OUTAGES: usize = 3;

/// Longer than any part needs until its pauses between two tries are as long as they become.
const OUTAGE: Duration = Duration::from_secs(4);

/// The most that the best outage may take until live text flows on both gateways, with the start of the Redis server.
/// It is below a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(2);

/// A model that speaks for longer than the test takes.
fn slow_speech() -> Reply {
    let pieces = (0..10_000).map(|number| format!("token{number} "));
    Reply::pieces(pieces.collect(), Duration::from_millis(20))
}

/// A reader at one gateway, and when it got the last frame with text.
struct Live {
    last_text: watch::Receiver<Option<Instant>>,
}

impl Live {
    fn at(stack: &Stack, gateway: usize, conversation: &str) -> Self {
        let client = GatewayClient::new(&stack.gateway_url(gateway)).unwrap();
        let (seen, last_text) = watch::channel(None);
        let frames = client.follow(conversation, 0);
        tokio::spawn(async move {
            let texts = frames
                .filter(|frame| ready(matches!(frame.event.as_str(), "text_start" | "text_delta")));
            texts
                .for_each(|_| {
                    seen.send_replace(Some(Instant::now()));
                    ready(())
                })
                .await;
        });
        Self { last_text }
    }

    /// Waits for the next frame with text that comes after `from`, and returns how long after.
    async fn text_after(&mut self, from: Instant) -> Duration {
        let next = self
            .last_text
            .wait_for(|last| last.is_some_and(|last| last > from));
        let next = timeout(Duration::from_mins(1), next).await;
        let at = next.expect("no live text in a minute").unwrap().unwrap();
        at.duration_since(from)
    }
}

#[tokio::test]
async fn live_text_soon_flows_on_every_gateway_when_redis_is_back() {
    let stack = Stack::breakable(Model::start(|_| slow_speech()).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("speak slowly").await;
    let [mut first, mut second] = [0, 1].map(|gateway| Live::at(&stack, gateway, &conversation));
    let mut both = async |from| tokio::join!(first.text_after(from), second.text_after(from));
    both(Instant::now()).await;
    let mut slowest = Vec::new();
    for outage in 1..=OUTAGES {
        stack.redis().kill().await;
        // The outage has a length; the sleep waits for nothing.
        sleep(OUTAGE).await;
        let back = Instant::now();
        let (started, (first, second)) = tokio::join!(
            async {
                stack.redis().start_again().await;
                back.elapsed()
            },
            both(back)
        );
        println!(
            "outage {outage}: Redis answers after {started:?}, live text flows after {first:?} and {second:?}"
        );
        slowest.push(first.max(second));
    }
    let best = slowest.iter().min().unwrap();
    assert!(*best < LIMIT, "{slowest:?}");
    stack.client().cancel(&conversation).await.unwrap();
    stack.ended(&conversation, 1).await;
}
