//! A reader whose connection is cut, and what a gateway sends it when it comes back (`clients/transcripts/README.md`,
//! "Cuts").

use std::time::{SystemTime, UNIX_EPOCH};

use everturn_client::{sse::Parser, state::Conversation};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::wire::Frame;

/// `EVERTURN_SEED`, or another one in each run.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("EVERTURN_SEED").ok();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    given.map_or(now.subsec_nanos().into(), |seed| seed.parse().unwrap())
}

/// Reads the frames over two connections, of which the first is cut at a random byte.
pub(crate) fn read_with_a_cut(frames: &[Frame], random: &mut Rng) -> Conversation {
    let bytes = joined(frames);
    let cut = random.usize(..bytes.len());
    let mut conversation = Conversation::default();
    let taken = feed(&mut conversation, &bytes[..cut], random);
    let whole = frames
        .iter()
        .enumerate()
        .filter(|(_, frame)| !frame.is_cut());
    let behind = whole.map(|(at, _)| at + 1).nth(taken.wrapping_sub(1));
    let seen = if taken == 0 { 0 } else { behind.unwrap() };
    let ends = |frame: &Frame| frame.json["data"]["type"] == "end";
    let until = frames[seen..].iter().position(ends);
    let happened = seen + random.usize(..=until.unwrap_or(frames.len() - seen));
    let mut second = catch_up(frames, seen, happened);
    second.extend_from_slice(&frames[happened..]);
    feed(&mut conversation, &joined(&second), random);
    conversation
}

fn joined(frames: &[Frame]) -> Vec<u8> {
    let bytes = frames.iter().flat_map(|frame| &frame.bytes);
    bytes.copied().collect()
}

/// Takes bytes in random pieces. Returns the number of frames in them.
fn feed(conversation: &mut Conversation, mut bytes: &[u8], random: &mut Rng) -> usize {
    let (mut parser, mut count) = (Parser::default(), 0);
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at((1 + random.usize(..300)).min(bytes.len()));
        bytes = rest;
        for message in parser.take(piece).unwrap() {
            count += 1;
            let data = serde_json::from_str(&message.data).unwrap_or(Value::Null);
            conversation.apply(message.id.as_deref(), data);
        }
    }
    count
}

/// What a gateway sends a client that has the first `seen` frames, when the first `happened` have happened.
fn catch_up(frames: &[Frame], seen: usize, happened: usize) -> Vec<Frame> {
    // The gateway's own view, and the events that its log has.
    let mut now = Conversation::default();
    let mut log: Vec<&Frame> = Vec::new();
    let mut cursor = 0;
    let mut reset = None;
    for (at, frame) in frames[..happened].iter().enumerate() {
        if frame.is_cut() {
            now.apply(None, json!({"type": "replay"}));
            continue;
        }
        let before = now.last_sequence();
        let (id, data) = frame.parts();
        let from = data["from_sequence"]
            .as_u64()
            .filter(|_| data["type"] == "reset");
        now.apply(id, data);
        if let Some(from) = from {
            log.retain(|event| event.sequence_number() < Some(from));
            if at >= seen && from <= cursor {
                reset = Some(reset.map_or(from, |reset: u64| reset.min(from)));
            }
        }
        if frame
            .sequence_number()
            .is_some_and(|number| number > before)
        {
            log.push(frame);
        }
        if at < seen {
            cursor = now.last_sequence();
        }
    }
    let mut sent = vec![Frame::of("replay", &json!({"type": "replay"}))];
    if let Some(from) = reset {
        let data = json!({"type": "reset", "from_sequence": from});
        sent.push(Frame::of("reset", &data));
        cursor = from - 1;
    }
    let missed = log
        .into_iter()
        .filter(|event| event.sequence_number() > Some(cursor));
    sent.extend(missed.cloned());
    for text in now.texts() {
        let mut data = json!({
            "type": "text_start", "agent_execution_id": text.agent_execution_id, "step": text.step, "part": text.part,
            "generation": text.generation, "text": text.text, "message_id": text.message_id,
        });
        sent.push(Frame::of("text_start", &data));
        if text.ended {
            data["type"] = "text_end".into();
            sent.push(Frame::of("text_end", &data));
        }
    }
    sent
}
