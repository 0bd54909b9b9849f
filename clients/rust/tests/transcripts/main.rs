//! The suite that all clients pass: `clients/transcripts/`.

#![allow(clippy::unwrap_used)]

mod cuts;
mod lists;
mod timeline;
mod wire;

use std::{fs, path::PathBuf};

use fastrand::Rng;
use serde_json::Value;

use everturn_client::{
    reconnect::{Outcome, Step, next_step},
    sse::Parser,
    state::{Conversation, turn_rows},
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../transcripts")
}

fn read(path: &str) -> Value {
    serde_json::from_slice(&fs::read(folder().join(path)).unwrap()).unwrap()
}

/// The transcripts of conversations, with their names.
fn transcripts() -> Vec<(String, Value)> {
    let files = fs::read_dir(folder().join("conversations")).unwrap();
    let mut names: Vec<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() > 20, "transcripts are missing");
    let read = |name: String| (name.clone(), read(&format!("conversations/{name}")));
    names.into_iter().map(read).collect()
}

fn state_of(conversation: &Conversation) -> Value {
    serde_json::to_value(conversation).unwrap()
}

#[test]
fn frames_give_the_state() {
    for (name, transcript) in transcripts() {
        let mut conversation = Conversation::default();
        for frame in wire::frames(&transcript) {
            let (id, data) = frame.parts();
            conversation.apply(id, data);
        }
        let state = state_of(&conversation);
        assert_eq!(state, transcript["state"], "{name}");
        for (message_id, expected) in transcript["answers"].as_object().unwrap() {
            let answer = conversation.answer_of_turn(message_id);
            assert_eq!(answer.as_deref(), expected.as_str(), "{name}, {message_id}");
        }
        if let Some(expected) = transcript.get("timeline") {
            assert_eq!(&timeline::of(&state), expected, "{name}");
        }
    }
}

#[test]
fn items_give_the_rows_of_a_waterfall() {
    let waterfalls = read("waterfalls.json");
    for waterfall in waterfalls.as_array().unwrap() {
        let mut conversation = Conversation::default();
        for event in waterfall["events"].as_array().unwrap() {
            conversation.apply(None, event.clone());
        }
        let turns = turn_rows(conversation.items(), conversation.turn());
        let turns = serde_json::to_value(turns).unwrap();
        assert_eq!(turns, waterfall["turns"], "{}", waterfall["about"]);
    }
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    let seed = cuts::seed();
    println!("EVERTURN_SEED={seed}");
    for (name, transcript) in transcripts() {
        let mut random = Rng::with_seed(seed);
        let frames = wire::frames(&transcript);
        for _ in 0..500 {
            let conversation = cuts::read_with_a_cut(&frames, &mut random);
            let state = state_of(&conversation);
            assert_eq!(state, transcript["state"], "{name}, EVERTURN_SEED={seed}");
        }
    }
}

#[test]
fn bytes_give_messages() {
    let cases = read("sse.json");
    for case in cases.as_array().unwrap() {
        let mut parser = Parser::default();
        let mut messages = Vec::new();
        for chunk in case["chunks"].as_array().unwrap() {
            messages.extend(parser.take(&wire::decoded(chunk)).unwrap());
        }
        let messages: Vec<_> = messages.iter().map(wire::message).collect();
        assert_eq!(Value::from(messages), case["messages"], "{}", case["about"]);
    }
}

#[test]
fn a_message_without_an_end_is_refused() {
    let mut parser = Parser::with_limit(1000);
    assert!(parser.take(b"data: 1\n\n").is_ok());
    let fed = (0..200).map(|_| parser.take(b"data: 12345678\n"));
    assert!(fed.into_iter().any(|taken| taken.is_err()));
}

#[test]
fn connections_are_made_again_or_not() {
    let cases = read("connection.json");
    for case in cases.as_array().unwrap() {
        let outcome = &case["outcome"];
        let text = |name: &str| outcome[name].as_str().map(str::to_owned);
        let outcome = if let Some(status) = outcome["status"].as_u64() {
            Outcome::Status {
                status: u16::try_from(status).unwrap(),
                retry_after: text("retryAfter"),
            }
        } else if let Some(delay_ms) = outcome["delayMs"].as_u64() {
            Outcome::Reconnect { delay_ms }
        } else if outcome.get("end").is_some() {
            Outcome::End
        } else {
            Outcome::Cut
        };
        let failures = u32::try_from(case["failures"].as_u64().unwrap()).unwrap();
        let retry_ms = case["retryMs"].as_u64().unwrap();
        let random = case["random"].as_f64().unwrap();
        let step = match next_step(&outcome, failures, retry_ms, random) {
            Step::Wait(wait) => {
                serde_json::json!({"waitMs": u64::try_from(wait.as_millis()).unwrap()})
            }
            Step::Ended => serde_json::json!({"stop": "ended"}),
            Step::Refused => serde_json::json!({"stop": "refused"}),
        };
        assert_eq!(step, case["step"], "{}", case["about"]);
    }
}
