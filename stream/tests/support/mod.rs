//! What the stream's tests share: keys, pieces and announcements of one turn, and how they are published and received.

#![allow(dead_code, unreachable_pub)] // each test binary uses a part

use std::time::Duration;

use everturn_proto::SealedStep;
use everturn_stream::{
    Announcement, Item, OpenText, Part, Piece, Published, StreamWriter, TextKey,
};
use tokio::{sync::mpsc, time::timeout};

/// The answer of a step.
pub fn key(execution: &str, step: u32) -> TextKey {
    TextKey {
        agent_execution_id: execution.to_owned(),
        step,
        part: Part::Text,
    }
}

/// The reasoning of a step.
pub fn reasoning_key(execution: &str, step: u32) -> TextKey {
    TextKey {
        part: Part::Reasoning,
        ..key(execution, step)
    }
}

/// A tool call of a step.
pub fn call_key(execution: &str, step: u32, number: u8) -> TextKey {
    TextKey {
        part: Part::Call(number),
        ..key(execution, step)
    }
}

pub fn piece(key: &TextKey, generation: u32, offset: usize, text: &str) -> Piece {
    let (key, text) = (key.clone(), text.to_owned());
    Piece {
        message_id: "m".to_owned(),
        key,
        generation,
        offset,
        text,
        is_end: false,
        continues: false,
    }
}

/// News that a batch was saved which replaces the texts of a step.
pub fn sealing(execution: &str, step: u32) -> Announcement {
    Announcement {
        last_sequence: 1,
        sealed: vec![SealedStep {
            agent_execution_id: execution.to_owned(),
            step,
        }],
    }
}

/// News that a batch was saved which replaces no text.
pub fn news() -> Announcement {
    Announcement {
        last_sequence: 1,
        sealed: Vec::new(),
    }
}

/// Publishes a piece in the conversation `c`.
pub async fn publish(stream: &impl StreamWriter, piece: Piece) -> Published {
    stream.publish(&"c".into(), piece).await.unwrap()
}

/// The next item; `None` when the follower was cut.
pub async fn next(items: &mut mpsc::Receiver<Item>) -> Option<Item> {
    timeout(Duration::from_mins(1), items.recv())
        .await
        .expect("no item came")
}

/// Adds a delta to the text that a reader holds. The delta must go on where that text ends.
pub fn append(held: Option<&mut OpenText>, piece: &Piece) {
    let held = held.expect("a delta of a text that never started");
    assert_eq!(
        (held.generation, held.text.len()),
        (piece.generation, piece.offset)
    );
    held.text.push_str(&piece.text);
    held.is_ended |= piece.is_end;
}
