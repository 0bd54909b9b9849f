//! The transcripts of the list's stream: every one ends in its list, also with cuts at random bytes.

use std::fs;

use everturn_client::{list::ConversationList, sse::Parser};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::{
    cuts, folder, read,
    wire::{self, Frame},
};

/// The transcripts, with their names.
fn transcripts() -> Vec<(String, Value)> {
    let files = fs::read_dir(folder().join("lists")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let found: Vec<_> = names
        .map(|name| (name.clone(), read(&format!("lists/{name}"))))
        .collect();
    assert!(found.len() >= 5, "transcripts are missing");
    found
}

/// What a program knows, and the connection that it reads.
#[derive(Default)]
struct Reader {
    known: ConversationList,
    parser: Parser,
}

impl Reader {
    fn connect(&mut self) {
        self.parser = Parser::default();
    }

    fn read(&mut self, frame: &Frame) {
        if frame.is_cut() {
            self.connect();
        }
        self.take(&frame.bytes);
    }

    fn take(&mut self, bytes: &[u8]) {
        for message in self.parser.take(bytes).unwrap() {
            let data = serde_json::from_str(&message.data).unwrap_or(Value::Null);
            self.known.apply(&data);
        }
    }
}

fn shown(list: &ConversationList) -> Value {
    let conversations = list.conversations();
    let rows = conversations.iter().map(|one| one.fields().clone());
    rows.map(Value::Object).collect()
}

fn with_a_cut(frames: &[Frame], random: &mut Rng) -> Value {
    let (mut reader, mut gateway) = (Reader::default(), ConversationList::default());
    let at = random.usize(..frames.len());
    for frame in &frames[..at] {
        reader.read(frame);
        gateway.apply(&frame.json["data"]);
    }
    let half = &frames[at].bytes;
    reader.take(&half[..random.usize(..half.len().max(1))]);
    let ahead = &frames[at..];
    let ends = |frame: &Frame| frame.json["data"]["type"] == "end";
    let most = ahead.iter().position(ends).unwrap_or(ahead.len());
    let away = random.usize(..=most);
    for frame in &ahead[..away] {
        gateway.apply(&frame.json["data"]);
    }
    reader.connect();
    let whole = json!({"type": "list", "conversations": shown(&gateway)});
    reader.read(&Frame::of("list", &whole));
    for frame in &ahead[away..] {
        reader.read(frame);
    }
    shown(&reader.known)
}

#[test]
fn frames_give_the_list() {
    for (name, transcript) in transcripts() {
        let mut reader = Reader::default();
        for frame in wire::frames(&transcript) {
            reader.read(&frame);
        }
        assert_eq!(shown(&reader.known), transcript["list"], "{name}");
    }
}

#[test]
fn a_cut_at_any_byte_changes_no_list() {
    let seed = cuts::seed();
    println!("EVERTURN_SEED={seed}");
    for (name, transcript) in transcripts() {
        let mut random = Rng::with_seed(seed);
        let frames = wire::frames(&transcript);
        for _ in 0..500 {
            let list = with_a_cut(&frames, &mut random);
            assert_eq!(list, transcript["list"], "{name}, EVERTURN_SEED={seed}");
        }
    }
}
