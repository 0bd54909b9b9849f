//! Replies as real servers of the chat completions send them, byte by byte.

use everturn_proto::words::FailureCode;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{port::ModelReply, provider::ProviderKind, wire::tests};

const P: &str = r#"{"city":"Paris"}"#;
const R: &str = r#"{"city":"Rome"}"#;
const DONE: &str = "data: [DONE]\n\n";

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn say(text: &str) -> String {
    data(&chunk(&json!({"content": text}), None))
}

fn delta(delta: &Value) -> String {
    data(&chunk(delta, None))
}

fn finish(word: &str) -> String {
    data(&chunk(&json!({}), Some(word)))
}

fn usage() -> String {
    data(&json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}))
}

fn call(index: &Value, id: &Value, name: &Value, arguments: &Value) -> String {
    let function = json!({"name": name, "arguments": arguments});
    delta(
        &json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
    )
}

fn read(body: &[String]) -> Result<ModelReply, FailureCode> {
    tests::read(ProviderKind::OpenAi, [body.concat()]).map_err(|error| error.code)
}

/// The calls of a reply: names and arguments.
fn calls(body: &[String]) -> Vec<(String, String)> {
    let reply = read(body).unwrap();
    let calls = reply.tool_calls.into_iter();
    calls
        .map(|call| (call.tool_name, call.arguments.as_str().to_owned()))
        .collect()
}

fn assert_calls(body: &[String], expected: &[(&str, &str)]) {
    let found = calls(body);
    let found: Vec<_> = found
        .iter()
        .map(|(name, arguments)| (&**name, &**arguments))
        .collect();
    assert_eq!(found, expected, "{body:?}");
}

fn assert_text(body: &[String], text: &str) {
    let reply = read(body);
    assert_eq!(
        reply.map(|reply| reply.text),
        Ok(text.to_owned()),
        "{body:?}"
    );
}

fn assert_fails(body: &[String], code: FailureCode) {
    assert_eq!(read(body).map(|reply| reply.text), Err(code), "{body:?}");
}

#[test]
fn sources_of_gateways_and_search_models_are_kept_once() {
    let source = |url: &str, title: &str| json!({"type": "url_citation", "url_citation": {"url": url, "title": title}});
    let mut cited = chunk(&json!({"content": "It rains [1]."}), None);
    cited["citations"] = json!(["https://a.example/"]);
    cited["search_results"] = json!([{"title": "A", "url": "https://a.example/"}]);
    let annotated = json!({"content": "", "annotations": [source("https://b.example/", "B")]});
    let azure =
        json!({"context": {"citations": [{"content": "c", "title": null, "filepath": "x.md"}]}});
    let body = [
        data(&cited),
        data(&json!({"choices": [], "citations": cited["citations"]})),
        delta(&annotated),
        delta(&azure),
        finish("stop"),
    ];
    let reply = read(&body).unwrap();
    let found = reply.citations.iter();
    let found: Vec<_> = found.map(|it| (&*it.url, &*it.title, &*it.text)).collect();
    let expected = [
        ("https://a.example/", "A", ""),
        ("https://b.example/", "B", ""),
        ("", "x.md", "c"),
    ];
    assert_eq!((&*reply.text, found), ("It rains [1].", expected.to_vec()));
}

#[test]
fn calls_in_every_shape() {
    let null = Value::Null;
    let end = [finish("tool_calls"), usage(), DONE.to_owned()].concat();
    let weather = |arguments: &str| [("weather".to_owned(), arguments.to_owned())];
    for piece in [
        call(&json!(0), &json!("a"), &json!("weather"), &json!(P)),
        call(&null, &json!("a"), &json!("weather"), &json!(P)),
        call(&json!("0"), &null, &json!("weather"), &json!(P)),
        call(
            &json!(0),
            &json!("a"),
            &json!("weather"),
            &json!({"city": "Paris"}),
        ),
        delta(&json!({"function_call": {"name": "weather", "arguments": P}})),
    ] {
        assert_eq!(calls(&[piece, end.clone()]), weather(P));
    }
    for nothing in [null.clone(), json!(""), json!("null"), json!({})] {
        let piece = call(&json!(0), &json!("a"), &json!("ping"), &nothing);
        assert_calls(&[piece, end.clone()], &[("ping", "{}")]);
    }
    let both = [("weather", P), ("weather", R)];
    let (one, two) = (json!(P), json!(R));
    let name = json!("weather");
    for pieces in [
        [
            call(&json!(0), &json!("a"), &name, &one),
            call(&json!(0), &json!("b"), &name, &two),
        ],
        [
            call(&null, &json!("a"), &name, &one),
            call(&null, &json!("b"), &name, &two),
        ],
        [
            call(&json!(1), &json!("a"), &name, &one),
            call(&json!(3), &json!("b"), &name, &two),
        ],
        [
            call(&json!(0), &null, &name, &one),
            call(&json!(0), &null, &name, &two),
        ],
    ] {
        assert_calls(&[pieces.concat(), end.clone()], &both);
    }
    let digits = r#"{"n":12345678901234567890.10}"#;
    let frame = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"function\":{{\"name\":\"ping\",\"arguments\":{digits}}}}}]}}}}]}}\n\n"
    );
    assert_calls(&[frame, end], &[("ping", digits)]);
}

#[test]
fn a_cut_reply_runs_no_cut_call() {
    for arguments in [P, r#"{"city":"Par"#] {
        let first = call(&json!(0), &json!("a"), &json!("weather"), &json!(R));
        let last = call(&json!(1), &json!("b"), &json!("weather"), &json!(arguments));
        let reply = read(&[first, last, finish("length"), DONE.to_owned()]).unwrap();
        assert!(reply.is_cut);
        let kinds: Vec<bool> = reply
            .tool_calls
            .iter()
            .map(|call| call.arguments.to_value().is_object())
            .collect();
        assert_eq!(kinds, [true, false], "{arguments}");
    }
}

#[test]
fn what_goes_back_is_kept_with_the_call() {
    let details =
        |text: &str| json!({"type": "reasoning.text", "index": 0, "text": text, "signature": null});
    let body = [
        delta(&json!({"reasoning_content": "I need ", "reasoning_details": [details("I need ")]})),
        delta(&json!({"reasoning_content": "it.", "reasoning_details": [details("it.")]})),
        delta(&json!({"tool_calls": [{
            "index": 0, "id": "a", "extra_content": {"google": {"thought_signature": "c2ln"}},
            "function": {"name": "weather", "arguments": P},
        }]})),
        finish("tool_calls"),
        DONE.to_owned(),
    ];
    let reply = read(&body).unwrap();
    assert_eq!(reply.reasoning, "I need it.");
    let blocks: Vec<Value> = reply.tool_calls[0]
        .signatures
        .iter()
        .map(|block| serde_json::from_str(block).unwrap())
        .collect();
    assert_eq!(
        blocks,
        [
            json!({"type": "extra_content", "value": {"google": {"thought_signature": "c2ln"}}}),
            json!({"type": "reasoning_details", "details": [details("I need it.")]}),
            json!({"type": "reasoning_content", "text": "I need it."}),
        ]
    );
}

#[test]
fn texts_in_every_shape() {
    let end = [finish("stop"), usage(), DONE.to_owned()].concat();
    for body in [
        vec![say("HELLO"), say("-1"), end.clone()],
        vec![data(&json!({"choices": [], "prompt_filter_results": []})), say("HELLO-1"), data(&json!({"choices": null})), end.clone()],
        vec![delta(&json!({"content": null})), delta(&json!({"content": "HELLO-1", "tool_calls": null, "refusal": null})), end.clone()],
        vec![delta(&json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]})), delta(&json!({"content": [{"type": "text", "text": "HELLO-1"}]})), end.clone()],
        vec![delta(&json!({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}], "content": ""})), say("HELLO-1"), end.clone()],
        vec![say("<think>\nsecret "), say("thought\n</think>\n\nHELLO"), say("-1"), end.clone()],
        vec![delta(&json!({"refusal": "HELLO"})), delta(&json!({"refusal": "-1"})), end.clone()],
        // The ends of a reply.
        vec![say("HELLO-1"), finish("stop")],
        vec![say("HELLO-1"), DONE.to_owned()],
        vec![say("HELLO-1"), finish("a new word"), DONE.to_owned()],
        vec![say("HELLO-1"), finish("stop"), "data: [DONE]".to_owned()],
        // No stream.
        vec![json!({"choices": [{"message": {"role": "assistant", "content": "HELLO-1"}, "finish_reason": "stop"}]}).to_string()],
        vec![format!("{:#}", json!([chunk(&json!({"content": "HELLO-1"}), Some("stop"))]))],
    ] {
        assert_text(&body, "HELLO-1");
    }
    let error_null = |text: &str| {
        let mut chunk = chunk(&json!({"content": text}), None);
        chunk["error"] = Value::Null;
        data(&chunk)
    };
    assert_text(
        &[error_null("HELLO"), error_null("-1"), end.clone()],
        "HELLO-1",
    );
    let halves = [r"HELLO \ud83d", r"\ude00-1"].map(|text| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    });
    assert_text(&[halves.concat(), end.clone()], "HELLO \u{fffd}\u{fffd}-1");
    assert_text(&[say("HEL\0LO-1"), end], "HEL\u{fffd}LO-1");
}

#[test]
fn no_failure_is_an_answer() {
    let done = DONE.to_owned();
    for empty in [
        vec![say(""), finish("stop"), done.clone()],
        vec![say(" \n"), finish("stop"), done.clone()],
        vec![
            delta(&json!({"reasoning_content": "hm"})),
            finish("stop"),
            done.clone(),
        ],
        vec![finish("tool_calls"), done.clone()],
        vec![done.clone()],
    ] {
        assert_fails(&empty, FailureCode::LlmEmptyReply);
    }
    for (word, code) in [
        ("abort", FailureCode::LlmUnavailable),
        ("error", FailureCode::LlmUnavailable),
        ("insufficient_system_resource", FailureCode::LlmUnavailable),
        ("MALFORMED_FUNCTION_CALL", FailureCode::LlmInvalidResponse),
        (
            "function_call_filter: MALFORMED_FUNCTION_CALL",
            FailureCode::LlmInvalidResponse,
        ),
        ("PROHIBITED_CONTENT", FailureCode::LlmContentPolicy),
        (
            "content_filter: PROHIBITED_CONTENT",
            FailureCode::LlmContentPolicy,
        ),
        ("content_filter", FailureCode::LlmContentPolicy),
    ] {
        assert_fails(&[say("HELL"), finish(word), done.clone()], code);
    }
    for cut in [
        vec![say("HELL")],
        vec![String::new()],
        vec![
            say("HELLO"),
            "data: {oops\n\n".to_owned(),
            say("-1"),
            finish("stop"),
            done.clone(),
        ],
        vec![say("HELLO"), "data: {\"choices\":[".to_owned()],
    ] {
        assert_fails(&cut, FailureCode::LlmStreamCut);
    }
    assert_fails(
        &["<!doctype html><html></html>".to_owned()],
        FailureCode::LlmBadRequest,
    );
    let thoughts = [
        delta(&json!({"reasoning_content": "I should"})),
        finish("length"),
        done,
    ];
    let reply = read(&thoughts).unwrap();
    assert_eq!((reply.is_cut, &*reply.text), (true, ""));
}

#[test]
fn tokens_are_counted_wherever_they_are() {
    let tokens = json!({"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}});
    let mut in_choice = chunk(&json!({}), Some("stop"));
    in_choice["choices"][0]["usage"] = tokens.clone();
    for frame in [
        json!({"choices": [], "usage": tokens}),
        json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5, "prompt_cache_hit_tokens": 3}}),
        json!({"choices": [], "x_groq": {"usage": tokens}}),
        in_choice,
    ] {
        let usage = read(&[say("x"), finish("stop"), data(&frame), DONE.to_owned()])
            .unwrap()
            .usage;
        assert_eq!(
            (usage.input_tokens, usage.output_tokens, usage.cached_tokens),
            (11, 5, 3),
            "{frame}"
        );
    }
}

/// Frames that mean nothing.
fn noise() -> impl Strategy<Value = String> {
    let frames = [
        ": keep-alive\n\n".to_owned(),
        ":\n".to_owned(),
        "\n".to_owned(),
        "event: ping\n\n".to_owned(),
        "retry: 5\nid: 7\n".to_owned(),
        data(&json!({"id": "x", "object": "chat.completion.chunk"})),
        data(&json!({"choices": [], "error": null, "new_field": {"a": [1]}})),
        data(&chunk(
            &json!({"content": null, "tool_calls": [], "audio": {"x": 1}}),
            None,
        )),
    ];
    prop::sample::select(frames.to_vec())
}

proptest! {
    #[test]
    fn a_reply_is_the_same_however_it_arrives(
        noise in prop::collection::vec(noise(), 8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        text in "[a-zé<\\\\ \"]{1,12}",
    ) {
        let frames = [
            delta(&json!({"reasoning_content": "hm"})),
            say("I say "),
            say(&text),
            call(&json!(0), &json!("a"), &json!("weather"), &json!(&P[..6])),
            call(&json!(1), &json!("b"), &json!("ping"), &json!("")),
            call(&json!(0), &Value::Null, &Value::Null, &json!(&P[6..])),
            finish("tool_calls"),
            usage(),
        ];
        let plain = tests::read(ProviderKind::OpenAi, [frames.concat() + DONE]);
        prop_assert!(plain.is_ok());
        let noisy = frames.iter().zip(&noise).map(|(frame, noise)| format!("{noise}{frame}"));
        let noisy = noisy.collect::<Vec<_>>().concat();
        let bytes = (noisy + DONE).into_bytes();
        let pieces = tests::split(&bytes, &cuts);
        prop_assert_eq!(&tests::read(ProviderKind::OpenAi, pieces), &plain);
    }

    #[test]
    fn a_cut_anywhere_is_an_error_or_the_reply(cut in 0_usize..1000) {
        let body = [say("HELLO"), say("-1"), call(&json!(0), &json!("a"), &json!("weather"), &json!(P)), finish("tool_calls"), usage(), DONE.to_owned()].concat();
        let cut = cut.min(body.len());
        let whole = tests::read(ProviderKind::OpenAi, [&body]).unwrap();
        match tests::read(ProviderKind::OpenAi, [&body.as_bytes()[..cut]]) {
            Ok(reply) => prop_assert_eq!((reply.text, reply.tool_calls), (whole.text, whole.tool_calls)),
            Err(error) => prop_assert_eq!(error.code, FailureCode::LlmStreamCut),
        }
    }
}
