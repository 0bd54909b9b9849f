//! What the model says in each conversation: all of it follows from the conversation's seed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_tests::{
    model::{Reply, Request},
    random::Random,
};
use serde_json::json;

/// Between two pieces of the model: a text lasts about a second, and is seen by several connections.
const PACE: Duration = Duration::from_millis(60);

/// Words of one to four bytes a character, and what JSON and SSE have to escape or split.
const WORDS: [&str; 8] = [
    "plain ",
    "größer ",
    "漢字かな交じり ",
    "🦀🦞 ",
    "Ωμέγα ",
    "two\nlines ",
    "\"quoted\\\" ",
    "👩‍👩‍👧 ",
];

/// Which call of the model: seed, turn and step.
pub(super) type Call = (u64, usize, usize);

/// A model whose every try of every step says something of its own, so that no two can be taken for one another.
#[derive(Clone, Default)]
pub(super) struct Script {
    tries: Arc<Mutex<HashMap<Call, u64>>>,
}

impl Script {
    pub(super) fn reply(&self, request: &Request) -> Reply {
        let content = request.last("user");
        let mut numbers = content
            .split_whitespace()
            .filter_map(|word| word.parse::<u64>().ok());
        let (seed, turn) = (numbers.next().unwrap(), numbers.next().unwrap());
        let step = request.results_since_user();
        let call = (seed, usize::try_from(turn).unwrap(), step);
        let attempt = *self
            .tries
            .lock()
            .unwrap()
            .entry(call)
            .and_modify(|tries| *tries += 1)
            .or_insert(1);
        let reply = Reply::pieces(pieces(call, attempt), PACE);
        if step < tools(seed) {
            reply.call("test_read", &json!({"sleep_ms": seed % 100}))
        } else {
            reply
        }
    }

    /// What each try of a call said, or was about to say when it was killed.
    pub(super) fn texts(&self, call: Call) -> Vec<String> {
        let tries = self
            .tries
            .lock()
            .unwrap()
            .get(&call)
            .copied()
            .unwrap_or_default();
        (1..=tries)
            .map(|attempt| pieces(call, attempt).concat())
            .collect()
    }
}

fn pieces((seed, turn, step): Call, attempt: u64) -> Vec<String> {
    let mut random = Random::of(&[seed, turn as u64, step as u64, attempt]);
    let piece = |random: &mut Random| {
        (0..=random.below(12))
            .map(|_| *random.pick(&WORDS))
            .collect()
    };
    (0..8 + random.below(16))
        .map(|_| piece(&mut random))
        .collect()
}

/// Tools of each turn, one after the other.
fn tools(seed: u64) -> usize {
    if seed.is_multiple_of(2) { 1 } else { 2 }
}

pub(super) fn turns(seed: u64) -> usize {
    if seed.is_multiple_of(5) { 2 } else { 1 }
}

/// Whether the first turn is cancelled on its way.
pub(super) fn is_cancelled(seed: u64) -> bool {
    seed % 7 == 3
}
