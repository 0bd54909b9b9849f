//! The bytes of a response in every form in which servers and proxies send them.

use std::{io::Write, sync::LazyLock};

use flate2::{Compression, write::GzEncoder};
use proptest::{prelude::*, sample::Index};

use super::*;
use crate::wire::tests::{answer, block_on, forms, split};

/// Events that change nothing.
const NOISE: &[&str] = &[
    "data: {\"type\":\"response.in_progress\",\"response\":{\"id\":\"resp_1\"}}\n\n",
    "data: {\"type\":\"response.new_kind\",\"delta\":\"no\"}\n\n",
    "data: {\"type\":\"response.output_text.done\",\"text\":\"no\"}\n\n",
];

/// A client that calls no server. Reading the roots of TLS takes longer than reading a response.
static CLIENT: LazyLock<ResponsesClient> =
    LazyLock::new(|| client("http://127.0.0.1:1".to_owned(), false));

/// Reads a response in the foreground from the pieces of a body.
fn read_as(header: Option<(&str, &str)>, pieces: &[&[u8]]) -> Asked {
    let answer = answer(header, pieces);
    let target = CLIENT.targets.get("p").unwrap();
    let (request, mut recorder) = (hello(), Recorder::default());
    let mut call = Call::new(target, &request, &mut recorder);
    let reply = block_on(call.follow(Some(answer)));
    Asked {
        reply,
        heard: recorder.heard,
        seen: Vec::new(),
    }
}

fn read(pieces: &[&[u8]]) -> Result<ModelReply, ModelError> {
    read_as(None, pieces).reply
}

fn frames(texts: &[String], call: bool) -> Vec<String> {
    let mut output = vec![message(&texts.concat())];
    if call {
        output.push(json!({"type": "function_call", "call_id": "call_a", "name": "ping", "arguments": "{\"a\":[1]}"}));
    }
    let mut events = vec![created()];
    events.extend(texts.iter().map(|text| delta(text)));
    events.push(completed(&output));
    numbered(0, events).iter().map(Value::to_string).collect()
}

fn plain(frames: &[String]) -> String {
    frames.iter().fold(String::new(), |body, frame| {
        body + "data: " + frame + "\n\n"
    })
}

proptest! {
    #[test]
    fn a_response_in_any_form_is_the_response(
        texts in prop::collection::vec("[a-zé \\\\\"\n]{1,9}", 1..5), call in any::<bool>(),
        form in forms(NOISE), at in prop::collection::vec(any::<Index>(), 0..5), end in any::<Index>(),
    ) {
        let frames = frames(&texts, call);
        let plain = plain(&frames);
        let expected = read(&[plain.as_bytes()]).map_err(|error| error.code);
        let body = form.write(&frames);
        let reply = read(&split(body.as_bytes(), &at)).map_err(|error| error.code);
        prop_assert_eq!(&reply, &expected, "{}", body);
        let cut = &body.as_bytes()[..end.index(body.len())];
        match read(&split(cut, &at)) {
            Err(error) if error.code == FailureCode::LlmStreamCut => {}
            rest => prop_assert_eq!(&rest.map_err(|error| error.code), &expected, "{}", body),
        }
    }
}

fn text(bytes: &str) -> String {
    read(&[bytes.as_bytes()]).unwrap().text
}

#[test]
fn a_response_without_a_stream_is_a_response() {
    let whole = json!({"object": "response", "status": "completed", "output": [message("Hi.")]});
    assert_eq!(text(&whole.to_string()), "Hi.");
    let lines = [delta("Hi."), completed(&[message("Hi.")])].map(|event| event.to_string());
    assert_eq!(text(&lines.join("\n")), "Hi.");
}

#[test]
fn a_last_event_without_its_items_and_status_is_filled_in() {
    let stream = |last: &Value| format!("data: {}\n\ndata: {last}\n\n", delta("Hi."));
    let last = json!({"type": "response.completed", "response": {"id": "resp_1"}});
    assert_eq!(text(&stream(&last)), "Hi.");
}

#[test]
fn halves_of_a_pair_and_a_nul_are_replaced() {
    let last = r#"{"type":"response.completed","response":{"status":"completed","output":
        [{"type":"message","content":[{"type":"output_text","text":"a\ud83d\u0000"}]}]}}"#;
    let piece = r#"{"type":"response.output_text.delta","delta":"a\ud83d\u0000"}"#;
    let body = format!("data: {piece}\n\ndata: {}\n\n", last.replace('\n', ""));
    let asked = read_as(None, &[body.as_bytes()]);
    assert_eq!(asked.reply.unwrap().text, "a\u{fffd}\u{fffd}");
    assert_eq!(asked.heard, [said("a\u{fffd}\u{fffd}")]);
}

#[test]
fn a_compressed_response_is_read() {
    let frames = frames(&["Hi.".to_owned()], false);
    let plain = plain(&frames);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(plain.as_bytes()).unwrap();
    let bytes = gzip.finish().unwrap();
    let header = Some(("content-encoding", "gzip"));
    assert_eq!(read_as(header, &[&bytes]).reply.unwrap().text, "Hi.");
    let unknown = read_as(Some(("content-encoding", "br")), &[b"x"]);
    assert_eq!(unknown.reply.unwrap_err().code, FailureCode::LlmBadRequest);
}

#[test]
fn an_error_in_any_form_has_the_words_of_the_provider() {
    for body in [
        "{\"error\":{\"message\":\"The pool is empty\"}}",
        "data: {\"detail\":\"The pool is empty\"}\n\n",
        "data: The pool is empty\n\n",
    ] {
        let error = read(&[body.as_bytes()]).unwrap_err();
        assert!(
            error.message.contains("The pool is empty"),
            "{body}: {}",
            error.message
        );
    }
    let page = read(&[b"<html><title>Sign in</title></html>"]).unwrap_err();
    assert!(page.message.contains("HTML"), "{}", page.message);
}
