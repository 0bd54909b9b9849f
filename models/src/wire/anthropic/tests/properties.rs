//! Any reply, in any form of a stream, split and cut anywhere.

use everturn_proto::words::FailureCode;
use everturn_stream::Part;
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

use super::{end, redacted, server_tool, start, text, thinking, tool};
use crate::{
    provider::ProviderKind,
    wire::tests::{Form, Heard, forms, heard, split},
};

/// Events that change nothing.
const NOTHING: &[&str] = &[
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "data: {\"type\":\"some_new_event\",\"x\":[{}],\"text\":\"no\"}\n\n",
    "event: x\ndata: {}\n\n",
];

#[derive(Debug, Clone)]
enum Block {
    Text(Vec<String>),
    Thought(String, String),
    Hidden(String),
    Call(Vec<String>),
    ServerTool,
}

fn blocks() -> impl Strategy<Value = Vec<Block>> {
    let words = || prop::collection::vec("\\PC{0,6}", 0..3);
    let arguments = "\\{(\"a\":\"[a-zé☃]{0,9}\",)?\"b\":[1-9][0-9]{0,30}(\\.[0-9]{1,9})?\\}";
    let block = prop_oneof![
        words().prop_map(Block::Text),
        ("\\PC{0,6}", "[a-z]{0,3}").prop_map(|(text, sign)| Block::Thought(text, sign)),
        "[a-z]{1,3}".prop_map(Block::Hidden),
        (arguments, any::<Index>()).prop_map(|(text, at)| {
            let mut at = at.index(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let (one, two) = text.split_at(at);
            Block::Call(vec![one.to_owned(), two.to_owned()])
        }),
        Just(Block::ServerTool),
    ];
    prop::collection::vec(block, 0..6)
}

fn letters(pieces: &[String]) -> Vec<&str> {
    pieces.iter().map(String::as_str).collect()
}

/// The frames of a reply.
fn frames(blocks: &[Block]) -> Vec<String> {
    let mut events = vec![start()];
    let mut index = 0;
    for block in blocks {
        let written: Vec<Value> = match block {
            Block::Text(words) => text(index, &letters(words)),
            Block::Thought(text, signature) => thinking(index, text, signature),
            Block::Hidden(data) => redacted(index, data),
            Block::Call(arguments) => tool(index, &format!("toolu_{index}"), &letters(arguments)),
            Block::ServerTool => server_tool(index),
        };
        events.extend(written);
        index += 2;
    }
    events.extend(end("end_turn"));
    events.iter().map(Value::to_string).collect()
}

/// The texts of the blocks that are not empty, divided by breaks.
fn joined(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n\n")
}

/// Checks a reply against the blocks that the provider wrote.
fn assert_read(blocks: &[Block], heard: &Heard) {
    let written = joined(blocks.iter().map(|block| match block {
        Block::Text(words) => words.concat(),
        _ => String::new(),
    }));
    let thought = joined(blocks.iter().map(|block| match block {
        Block::Thought(text, _) => text.clone(),
        _ => String::new(),
    }));
    let calls: Vec<String> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Call(pieces) => Some(pieces.concat()),
            _ => None,
        })
        .collect();
    if written.trim().is_empty() && calls.is_empty() {
        let error = heard.reply.as_ref().unwrap_err();
        assert_eq!(error.code, FailureCode::LlmEmptyReply);
        return;
    }
    let reply = heard.reply.as_ref().unwrap();
    assert_eq!((&reply.text, &reply.reasoning), (&written, &thought));
    let read: Vec<&str> = reply
        .tool_calls
        .iter()
        .map(|it| it.arguments.as_str())
        .collect();
    assert_eq!(read, calls);
    let heard_of = |part: Part| -> String {
        let deltas = heard.deltas.iter().filter(|(of, _)| *of == part);
        deltas.map(|(_, piece)| &**piece).collect()
    };
    assert_eq!(heard_of(Part::Text), written);
    assert_eq!(heard_of(Part::Reasoning), thought);
    let signed: usize = reply.tool_calls.iter().map(|it| it.signatures.len()).sum();
    let last = blocks.iter().rposition(|it| matches!(it, Block::Call(_)));
    let before = blocks[..last.unwrap_or_default()].iter();
    let is_signed = |block: &&Block| match block {
        Block::Thought(_, signature) => !signature.is_empty(),
        Block::Hidden(_) => true,
        _ => false,
    };
    assert_eq!(signed, before.filter(is_signed).count());
}

fn read_form(form: &Form, frames: &[String], at: &[Index]) -> Heard {
    let stream = form.write(frames);
    heard(ProviderKind::Anthropic, &split(stream.as_bytes(), at))
}

/// Events with the fields of the wire and any values.
fn any_event() -> impl Strategy<Value = Value> {
    const EVENTS: [&str; 8] = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message",
        "ping",
        "",
    ];
    const TYPES: [&str; 8] = [
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "text_delta",
        "thinking_delta",
        "signature_delta",
        "input_json_delta",
    ];
    let leaf = prop_oneof![
        4 => prop::sample::select(&TYPES[..]).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => Just(json!(1e300)),
        1 => Just(json!({})),
        1 => Just(Value::Null),
    ];
    let value = leaf.prop_recursive(3, 16, 5, |inner| {
        let name = "type|index|text|thinking|signature|id|name|input|partial_json|stop_reason|input_tokens";
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => prop::collection::hash_map(name, inner, 0..5).prop_map(|fields| json!(fields)),
        ]
    });
    let name = "index|content_block|delta|usage|message|content|stop_reason";
    let fields = prop::collection::hash_map(name, value, 0..5);
    (prop::sample::select(&EVENTS[..]), fields).prop_map(|(event, fields)| {
        let mut frame = json!(fields);
        if !event.is_empty() {
            frame["type"] = event.into();
        }
        frame
    })
}

proptest! {
    #[test]
    fn any_events_are_a_reply_or_an_error_with_a_code(
        events in prop::collection::vec(any_event(), 0..20),
        has_end in any::<bool>(),
    ) {
        let stream = events.iter().map(|event| format!("data: {event}\n\n"));
        let last = has_end.then(|| "data: {\"type\":\"message_stop\"}\n\n".to_owned());
        let stream = stream.chain(last).collect::<Vec<_>>().concat();
        match heard(ProviderKind::Anthropic, &[stream.as_bytes()]).reply {
            Ok(reply) => prop_assert!(!reply.text.is_empty() || !reply.tool_calls.is_empty() || reply.is_cut),
            Err(error) => prop_assert!(FailureCode::ALL.contains(&error.code), "{}", error),
        }
    }

    #[test]
    fn a_reply_in_any_form_is_the_reply(
        blocks in blocks(),
        one in forms(NOTHING),
        other in forms(NOTHING),
        at in prop::collection::vec(any::<Index>(), 0..6),
    ) {
        let frames = frames(&blocks);
        let heard = read_form(&one, &frames, &[]);
        assert_read(&blocks, &heard);
        let again = read_form(&other, &frames, &at);
        prop_assert_eq!(&heard.deltas, &again.deltas);
        let codes = [heard, again].map(|it| it.reply.map_err(|error| error.code));
        prop_assert_eq!(&codes[0], &codes[1]);
    }

    #[test]
    fn a_cut_reply_is_an_error_and_no_other_reply(
        blocks in blocks(),
        form in forms(NOTHING),
        at in any::<Index>(),
    ) {
        let frames = frames(&blocks);
        let stream = form.write(&frames);
        let whole = heard(ProviderKind::Anthropic, &[stream.as_bytes()]);
        let cut = heard(ProviderKind::Anthropic, &[&stream.as_bytes()[..at.index(stream.len())]]);
        let whole = whole.reply.map_err(|error| error.code);
        match cut.reply.map_err(|error| error.code) {
            Err(FailureCode::LlmStreamCut) => {}
            cut => {
                let has_end = stream[..at.index(stream.len())].contains("stop_reason\":\"end_turn");
                prop_assert!(has_end, "{:?}", cut);
                prop_assert_eq!(cut, whole);
            }
        }
    }
}
