//! What the model says in each conversation. The conversation's seed determines all of it.

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

/// Time between two pieces of the model. With it a text takes about a second, so that several connections see it.
const PACE: Duration = Duration::from_millis(60);

/// Words with characters of one to four bytes, and with characters that JSON must escape or SSE would split at.
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

/// The key of an LLM call: seed, turn and step.
pub(super) type Call = (u64, usize, usize);

/// A model that says something else in every try of every step, so that two tries cannot be confused.
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

    /// Returns the whole text of each try of a call, also of tries that were cut off.
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

/// Returns the number of tools of each turn, which are called one after the other.
fn tools(seed: u64) -> usize {
    if seed.is_multiple_of(2) { 1 } else { 2 }
}

pub(super) fn turns(seed: u64) -> usize {
    if seed.is_multiple_of(5) { 2 } else { 1 }
}

/// Returns whether the first turn is cancelled while it runs.
pub(super) fn is_cancelled(seed: u64) -> bool {
    seed % 7 == 3
}
