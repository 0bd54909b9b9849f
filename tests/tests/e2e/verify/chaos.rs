//! Many turns with providers that fail in a fifth of their calls, in every way in which a provider fails, on each wire.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use everturn_tests::{
    events::types,
    model::{Model, Reply, Request, Wire},
    random::Random,
    stack::Stack,
};
use futures::{StreamExt, stream};
use serde_json::json;

const TURNS: usize = 200;
/// The calls that a turn needs: one that asks for a tool, and one that answers.
const STEPS: usize = 2;
const SEED: u64 = 14;
/// Number of calls of a hundred that fail in each of the four ways.
const SHARE: usize = 5;
/// Messages that are sent at the same time.
const SENDING: usize = 16;

/// What a provider has answered.
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

/// The wire of a turn.
fn wire_of(turn: usize) -> Wire {
    Wire::CHAT[turn % Wire::CHAT.len()]
}

/// The provider of a wire, and its agent.
fn agent(stack: &Stack, wire: Wire) -> String {
    let (kind, url) = (wire.kind(), stack.model.base_url_of(wire));
    format!(
        "[providers.{kind}]\nkind = \"{kind}\"\nbase_url = \"{url}\"\napi_key_env = \"SCRIPTED_KEY\"\n\
         [agents.{kind}]\nprovider = \"{kind}\"\nmodel = \"a-model\"\ntools = [\"calculate\"]\n"
    )
}

#[tokio::test]
async fn every_turn_completes_and_no_reply_is_paid_for_twice() {
    let ledgers: Arc<[Ledger; Wire::CHAT.len()]> = Arc::default();
    let attempts: Mutex<HashMap<(usize, usize), usize>> = Mutex::default();
    let counted = ledgers.clone();
    let model = Model::start(move |request: &Request| {
        let turn = request.last("user");
        let turn = turn.trim_start_matches("turn ").parse().unwrap();
        let step = request.results_since_user();
        assert_eq!(request.wire, wire_of(turn));
        let attempt = {
            let mut attempts = attempts.lock().unwrap();
            let attempt = attempts.entry((turn, step)).or_default();
            *attempt += 1;
            *attempt
        };
        answer(&counted[turn % counted.len()], turn, step, attempt)
    });
    let stack = Stack::new(model.await).await;
    for wire in Wire::CHAT {
        stack.configure(&agent(&stack, wire));
    }
    let _running = stack.start().await;

    let client = stack.client();
    let client = &client;
    let asked = (0..TURNS).map(|turn| async move {
        let agent = Some(wire_of(turn).kind());
        let conversation = client.create_conversation(agent).await.unwrap();
        let message = format!("turn {turn}");
        client.submit(&conversation, &message, None).await.unwrap();
        conversation
    });
    let asked: Vec<_> = stream::iter(asked).buffered(SENDING).collect().await;
    for conversation in &asked {
        let events = stack.ended(conversation, 1).await;
        assert_eq!(
            types(&events),
            "user_message thought act observe assistant_message complete",
            "{events:#?}"
        );
    }

    let mut paid = 0;
    for (number, (wire, ledger)) in Wire::CHAT.iter().zip(&*ledgers).enumerate() {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let (refused, cut) = (count(&ledger.refused), count(&ledger.cut));
        assert!(
            refused > 6 && cut > 6,
            "{wire:?}: {refused} refused and {cut} cut"
        );
        // A reply that came whole is paid for once; beside it only those that were cut are paid for.
        let turns = (0..TURNS).filter(|turn| turn % ledgers.len() == number);
        let completed = turns.count() * STEPS;
        assert_eq!(count(&ledger.completed), completed, "{wire:?}");
        paid += refused + cut + completed;
    }
    assert_eq!(stack.model.requests().len(), paid);
}
