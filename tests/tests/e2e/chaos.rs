//! Many turns with a provider that fails in a fifth of its calls, in every way in which a provider fails.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    random::Random,
    stack::Stack,
};
use futures::{StreamExt, stream};
use serde_json::json;

const TURNS: usize = 200;
/// The calls that a turn needs: one that asks for a tool, and one that answers.
const STEPS: usize = 2;
const SEED: u64 = 14;
/// Of a hundred calls, so many fail in each of the four ways.
const SHARE: usize = 5;
/// Messages that are sent at the same time.
const SENDING: usize = 16;

/// What the provider has answered.
#[derive(Default)]
struct Ledger {
    refused: AtomicUsize,
    cut: AtomicUsize,
    completed: AtomicUsize,
}

/// The reply to a call, which fails or not by the seed, the turn, the step and the try, in whatever order calls come.
fn answer(ledger: &Ledger, turn: usize, step: usize, attempt: usize) -> Reply {
    let seeds = [turn, step, attempt].map(|number| u64::try_from(number).unwrap());
    let chance = Random::of(&[&[SEED], &seeds[..]].concat()).below(100) / SHARE;
    let count = |counter: &AtomicUsize| counter.fetch_add(1, Ordering::Relaxed);
    let good = match step {
        0 => Reply::text("Let me see.").call("calculate", &json!({"expression": "21 * 2"})),
        _ => Reply::text("It is 42."),
    };
    count(match chance {
        0 | 1 => &ledger.refused,
        2 | 3 => &ledger.cut,
        _ => &ledger.completed,
    });
    match chance {
        0 => Reply::error(429, "rate_limit_exceeded").header("retry-after", "1"),
        1 => Reply::error(503, "server_error").header("retry-after-ms", "500"),
        2 => good.cut(),
        3 => good.event("{\"choices\": [{]}"),
        _ => good,
    }
}

#[tokio::test]
async fn every_turn_completes_and_no_reply_is_paid_for_twice() {
    let ledger = Arc::new(Ledger::default());
    let attempts: Mutex<HashMap<(usize, usize), usize>> = Mutex::default();
    let counted = ledger.clone();
    let model = Model::start(move |request: &Request| {
        let turn = request.last("user");
        let turn = turn.trim_start_matches("turn ").parse().unwrap();
        let step = request.results_since_user();
        let attempt = {
            let mut attempts = attempts.lock().unwrap();
            let attempt = attempts.entry((turn, step)).or_default();
            *attempt += 1;
            *attempt
        };
        answer(&counted, turn, step, attempt)
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;

    let messages: Vec<_> = (0..TURNS).map(|turn| format!("turn {turn}")).collect();
    let asked = messages.iter().map(|message| stack.ask(message));
    let asked: Vec<_> = stream::iter(asked).buffered(SENDING).collect().await;
    for (conversation, _) in &asked {
        let events = stack.ended(conversation, 1).await;
        assert_eq!(
            types(&events),
            "user_message thought act observe assistant_message complete",
            "{events:#?}"
        );
    }

    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let (refused, cut) = (count(&ledger.refused), count(&ledger.cut));
    assert!(refused > 20 && cut > 20, "{refused} refused and {cut} cut");
    // A reply that came whole is paid for once; beside it only those that were cut are paid for.
    let completed = TURNS * STEPS;
    assert_eq!(count(&ledger.completed), completed);
    assert_eq!(stack.model.requests().len(), refused + cut + completed);
}
