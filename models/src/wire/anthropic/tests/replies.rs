//! Replies as Anthropic, compatible servers and proxies send them.

use everturn_proto::words::FailureCode;
use serde_json::{Value, json};

use super::{
    PARIS, ROME, block, end, hear, hear_blocks, redacted, server_tool, start, text, thinking, tool,
    tool_with,
};
use crate::{
    port::ModelReply,
    provider::ProviderKind,
    wire::tests::{Heard, heard},
};

/// The id and the arguments of each call.
fn calls(reply: &ModelReply) -> Vec<(&str, &str)> {
    let calls = reply.tool_calls.iter();
    calls
        .map(|call| {
            (
                call.call_id.as_deref().unwrap_or_default(),
                call.arguments.as_str(),
            )
        })
        .collect()
}

fn assert_calls(heard: Heard, expected: &[(&str, &str)]) {
    assert_eq!(calls(&heard.reply.unwrap()), expected);
}

fn code(heard: Heard) -> FailureCode {
    heard.reply.unwrap_err().code
}

/// The signed blocks of each call.
fn signatures(heard: Heard) -> Vec<Vec<Value>> {
    let calls = heard.reply.unwrap().tool_calls.into_iter();
    calls
        .map(|call| {
            let blocks = call.signatures.iter();
            blocks
                .map(|text| serde_json::from_str(text).unwrap())
                .collect()
        })
        .collect()
}

fn thought(text: &str, signature: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": signature})
}

#[test]
fn a_text_and_calls() {
    let blocks = [
        text(0, &["Let me ", "look."]),
        tool(1, "toolu_1", &["", r#"{"ci"#, r#"ty":"Paris"}"#]),
        tool(2, "toolu_2", &[ROME]),
    ];
    let heard = hear_blocks(&blocks, "tool_use");
    // Two pieces of the text, and three of the arguments.
    assert_eq!(heard.deltas.len(), 5);
    let reply = heard.reply.unwrap();
    assert_eq!(reply.text, "Let me look.");
    assert_eq!(calls(&reply), [("toolu_1", PARIS), ("toolu_2", ROME)]);
    assert!(!reply.is_cut);
    let usage = reply.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (11, 5));
}

#[test]
fn texts_around_a_call_do_not_run_together() {
    let blocks = [
        text(0, &["One."]),
        tool(1, "toolu_1", &[PARIS]),
        text(2, &["Two."]),
    ];
    let reply = hear_blocks(&blocks, "tool_use").reply.unwrap();
    assert_eq!(reply.text, "One.\n\nTwo.");
    assert_eq!(calls(&reply), [("toolu_1", PARIS)]);
}

#[test]
fn signed_thoughts_stay_with_the_call_after_them() {
    let one = tool(1, "toolu_1", &[PARIS]);
    let heard = hear_blocks(&[thinking(0, "hm", "S1"), one.clone()], "tool_use");
    assert_eq!(heard.reply.as_ref().unwrap().reasoning, "hm");
    assert_eq!(signatures(heard), [[thought("hm", "S1")]]);

    let hidden = json!({"type": "redacted_thinking", "data": "ENC"});
    let two = [
        thinking(0, "hm", "S1"),
        redacted(1, "ENC"),
        tool(2, "toolu_1", &[PARIS]),
    ];
    assert_eq!(
        signatures(hear_blocks(&two, "tool_use")),
        [[thought("hm", "S1"), hidden]]
    );

    let interleaved = [
        thinking(0, "one", "S1"),
        one.clone(),
        thinking(2, "two", "S2"),
        tool(3, "toolu_2", &[ROME]),
        thinking(4, "after the last call", "S3"),
    ];
    let heard = hear_blocks(&interleaved, "tool_use");
    assert_eq!(
        heard.reply.as_ref().unwrap().reasoning,
        "one\n\ntwo\n\nafter the last call"
    );
    assert_eq!(
        signatures(heard),
        [[thought("one", "S1")], [thought("two", "S2")]]
    );

    // A signature of a thought that is not shown, and a signature in pieces.
    let hidden = block(
        0,
        &thought("", ""),
        vec![
            json!({"type": "signature_delta", "signature": "S"}),
            json!({"type": "signature_delta", "signature": "1"}),
        ],
    );
    let heard = hear_blocks(&[hidden, one.clone()], "tool_use");
    assert_eq!(signatures(heard), [[thought("", "S1")]]);

    // GLM, Kimi and MiniMax sign nothing.
    let heard = hear_blocks(&[thinking(0, "hm", ""), one], "tool_use");
    assert_eq!(signatures(heard), [Vec::<Value>::new()]);
}

#[test]
fn arguments_in_every_place() {
    let input = json!({"city": "Paris"});
    let with = |input: &Value, pieces: &[&str]| {
        hear_blocks(&[tool_with(0, "toolu_1", input, pieces)], "tool_use")
    };
    assert_calls(with(&json!({}), &[""]), &[("toolu_1", "{}")]);
    assert_calls(with(&Value::Null, &[]), &[("toolu_1", "{}")]);
    // Proxies send the whole arguments at the beginning, and some send them a second time in pieces.
    assert_calls(with(&input, &[]), &[("toolu_1", PARIS)]);
    assert_calls(with(&input, &["", PARIS]), &[("toolu_1", PARIS)]);
    assert_calls(with(&json!(PARIS), &[]), &[("toolu_1", PARIS)]);

    let object = json!({"type": "input_json_delta", "partial_json": {"city": "Paris"}});
    let begin = json!({"type": "tool_use", "id": "toolu_1", "name": "weather"});
    let heard = hear_blocks(&[block(0, &begin, vec![object])], "tool_use");
    assert_calls(heard, &[("toolu_1", PARIS)]);

    let bad = with(&json!({}), &[r#"{"city":"Paris",}"#]).reply.unwrap();
    assert!(
        calls(&bad)[0].1.starts_with('"'),
        "a text, which no tool takes"
    );
}

#[test]
fn digits_are_kept_in_every_place() {
    const BIG: &str = r#"{"n":12345678901234567890123.10}"#;
    let stream = |begin: &str, delta: &str| {
        format!(
            "data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"tool_use\",\
             \"id\":\"t\",\"name\":\"weather\",\"input\":{begin}}}}}\n\n{delta}\
             data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"tool_use\"}}}}\n\n"
        )
    };
    let delta = format!(
        "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"input_json_delta\",\
         \"partial_json\":{BIG}}}}}\n\n"
    );
    let whole = format!(
        "data: {{\"type\":\"message\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"weather\",\
         \"input\":{BIG}}}],\"stop_reason\":\"tool_use\"}}\n\n"
    );
    for stream in [stream(BIG, ""), stream("{}", &delta), whole] {
        let heard = heard(ProviderKind::Anthropic, &[stream.as_bytes()]);
        assert_calls(heard, &[("t", BIG)]);
    }
}

#[test]
fn a_cut_call_never_runs() {
    for input in [json!({}), json!({"city": "Paris"})] {
        for pieces in [&[r#"{"city":"Pa"#][..], &[PARIS], &[]] {
            let blocks = [
                tool(0, "toolu_1", &[ROME]),
                tool_with(1, "toolu_2", &input, pieces),
            ];
            let reply = hear_blocks(&blocks, "max_tokens").reply.unwrap();
            assert!(reply.is_cut);
            let calls = calls(&reply);
            assert_eq!(calls[0], ("toolu_1", ROME));
            assert!(calls[1].1.starts_with('"'), "{calls:?}");
        }
    }
    // The model had gone on to a text, so the call was whole.
    let blocks = [tool(0, "toolu_1", &[PARIS]), text(1, &["And"])];
    assert_calls(hear_blocks(&blocks, "max_tokens"), &[("toolu_1", PARIS)]);
}

#[test]
fn indexes_that_proxies_write_wrongly() {
    let without = |events: Vec<Value>, index: &Value| -> Vec<Value> {
        let with = |mut event: Value| {
            if event["index"].is_number() {
                event["index"] = index.clone();
            }
            event
        };
        events.into_iter().map(with).collect()
    };
    for index in [json!(0), json!("0"), Value::Null] {
        let blocks = [
            text(0, &["One."]),
            tool(1, "toolu_1", &[PARIS]),
            tool(2, "toolu_1", &[ROME]),
            text(3, &["Two."]),
        ]
        .map(|events| without(events, &index));
        let reply = hear_blocks(&blocks, "tool_use").reply.unwrap();
        assert_eq!(reply.text, "One.\n\nTwo.");
        assert_eq!(calls(&reply), [("toolu_1", PARIS), ("toolu_1", ROME)]);
    }
    // The beginning of a call a second time, and a piece under the index of a text.
    let mut call = tool(1, "toolu_1", &[PARIS]);
    call.insert(1, call[0].clone());
    call[2]["index"] = json!(0);
    let heard = hear_blocks(&[text(0, &["One."]), call], "tool_use");
    assert_calls(heard, &[("toolu_1", PARIS)]);
}

#[test]
fn unknown_events_and_blocks_are_passed_over() {
    let fallback = json!({"type": "fallback", "from": {"model": "x"}});
    let events = [
        vec![
            json!({"type": "ping"}),
            start(),
            json!({"type": "some_new_event", "x": 1}),
        ],
        server_tool(0),
        block(2, &fallback, Vec::new()),
        block(
            3,
            &json!({"type": "text", "text": "HEL"}),
            vec![json!({"type": "text_delta", "text": "LO"})],
        ),
        end("end_turn"),
    ];
    let reply = hear(&events.concat()).reply.unwrap();
    assert_eq!((&*reply.text, reply.tool_calls.len()), ("HELLO", 0));

    // The arguments of the provider's own tool are not glued to a call before it.
    let blocks = [tool(0, "toolu_1", &[]), server_tool(1)];
    assert_calls(hear_blocks(&blocks, "tool_use"), &[("toolu_1", "{}")]);
}

#[test]
fn the_sources_of_each_text_are_kept() {
    let cites = |citation: Value| json!({"type": "citations_delta", "citation": citation});
    let web = json!({"type": "web_search_result_location", "url": "https://a.example/", "title": "A", "cited_text": "Rain."});
    let document =
        json!({"type": "char_location", "document_title": "Report", "cited_text": "Wet."});
    let events = [
        vec![start()],
        block(
            0,
            &json!({"type": "text", "text": "", "citations": []}),
            vec![
                cites(web.clone()),
                json!({"type": "text_delta", "text": "It rains."}),
            ],
        ),
        block(
            1,
            &json!({"type": "text", "text": "It is wet.", "citations": [document]}),
            vec![
                cites(web),
                cites(json!({"cited_text": "y"})),
                cites(json!(null)),
            ],
        ),
        end("end_turn"),
    ];
    let cited = hear(&events.concat()).reply.unwrap().citations.into_iter();
    let cited: Vec<_> = cited.map(|it| [it.url, it.title, it.text]).collect();
    let expected = [["https://a.example/", "A", "Rain."], ["", "Report", "Wet."]];
    assert_eq!(cited, expected.map(|it| it.map(str::to_owned)));
}

#[test]
fn names_of_events_only_in_the_line_before_the_data() {
    let blocks = [text(0, &["HELLO"]), tool(1, "toolu_1", &[PARIS])];
    let events = [vec![start()], blocks.concat(), end("tool_use")].concat();
    let without_type = |mut event: Value| {
        let name = event["type"].take();
        event.as_object_mut().unwrap().remove("type");
        format!("event: {}\ndata: {event}\n\n", name.as_str().unwrap())
    };
    let stream: String = events.into_iter().map(without_type).collect();
    let reply = heard(ProviderKind::Anthropic, &[stream.as_bytes()])
        .reply
        .unwrap();
    assert_eq!(reply.text, "HELLO");
    assert_eq!(calls(&reply), [("toolu_1", PARIS)]);
    assert_eq!(reply.usage.input_tokens, 11);
}

#[test]
fn a_piece_without_a_beginning_is_the_beginning() {
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let events = [
        vec![
            start(),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "S1"})),
            delta(1, json!({"type": "text_delta", "text": "HELLO"})),
        ],
        tool(2, "toolu_1", &[PARIS]),
        end("tool_use"),
    ];
    let heard = hear(&events.concat());
    assert_eq!(heard.reply.as_ref().unwrap().text, "HELLO");
    assert_eq!(signatures(heard), [[thought("hm", "S1")]]);
}

#[test]
fn a_whole_message_in_place_of_a_stream() {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "content": [
            thought("hm", "S1"),
            {"type": "text", "text": "One."},
            {"type": "text", "text": "Two."},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}},
            {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {}},
        ],
        "usage": {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 5},
    });
    for body in [message.to_string(), format!("data: {message}\n\n")] {
        let heard = heard(ProviderKind::Anthropic, &[body.as_bytes()]);
        let reply = heard.reply.as_ref().unwrap();
        assert_eq!((&*reply.text, &*reply.reasoning), ("One.\n\nTwo.", "hm"));
        assert_eq!(calls(reply), [("toolu_1", PARIS), ("toolu_2", "{}")]);
        assert_eq!(
            (reply.usage.input_tokens, reply.usage.output_tokens),
            (10, 5)
        );
        assert_eq!(signatures(heard), [vec![thought("hm", "S1")], vec![]]);
    }
}

#[test]
fn ends() {
    let part = |stop: &str| hear_blocks(&[text(0, &["PART"])], stop);
    for stop in ["max_tokens", "model_context_window_exceeded", "pause_turn"] {
        let reply = part(stop).reply.unwrap();
        assert_eq!((&*reply.text, reply.is_cut), ("PART", true), "{stop}");
    }
    for stop in ["end_turn", "stop_sequence", "new_word"] {
        assert!(!part(stop).reply.unwrap().is_cut, "{stop}");
    }
    assert_eq!(code(part("refusal")), FailureCode::LlmContentPolicy);
    assert_eq!(
        code(hear_blocks(&[], "end_turn")),
        FailureCode::LlmEmptyReply
    );
    let only_thoughts = [thinking(0, "hm", "S1")];
    assert_eq!(
        code(hear_blocks(&only_thoughts, "end_turn")),
        FailureCode::LlmEmptyReply
    );

    let mut refused = end("refusal");
    refused[0]["delta"]["stop_details"] = json!({"type": "refusal", "explanation": "Not this."});
    let error = hear(&refused).reply.unwrap_err();
    assert!(error.message.contains("refusal: Not this."), "{error}");
}

#[test]
fn a_reply_without_its_last_event_is_whole_once_it_has_a_reason() {
    let events = [vec![start()], text(0, &["HELLO"]), end("end_turn")].concat();
    let whole = hear(&events[..events.len() - 1]).reply.unwrap();
    assert_eq!(whole.text, "HELLO");
    let cut = hear(&events[..events.len() - 2]);
    assert_eq!(code(cut), FailureCode::LlmStreamCut);
    // A last event without a reason is an end, too.
    let without = [
        &events[..events.len() - 2],
        &[json!({"type": "message_stop"})],
    ]
    .concat();
    assert_eq!(hear(&without).reply.unwrap().text, "HELLO");
}

#[test]
fn an_error_in_the_stream_is_the_error() {
    let half = [vec![start()], text(0, &["HELL"])].concat();
    for error in [
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        json!({
            "type": "error",
            "error": {"details": null, "type": "overloaded_error", "message": "Overloaded"},
            "request_id": "req_1",
        }),
    ] {
        let heard = hear(&[&half[..], &[error]].concat());
        assert_eq!(heard.deltas.len(), 1);
        assert_eq!(code(heard), FailureCode::LlmOverloaded);
    }
}

#[test]
fn counts_of_tokens() {
    let usage = |first: Value, last: Value| {
        let mut events = [vec![start()], text(0, &["HELLO"]), end("end_turn")].concat();
        let end = events.len() - 2;
        events[0]["message"]["usage"] = first;
        events[end]["usage"] = last;
        let usage = hear(&events).reply.unwrap().usage;
        let (cached, written) = (usage.cached_tokens, usage.cache_write_tokens);
        (
            usage.input_tokens,
            cached,
            written,
            usage.output_tokens,
            usage.reasoning_tokens,
        )
    };
    let first = json!({
        "input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 1,
    });
    let thinking = json!({"output_tokens": 25, "output_tokens_details": {"thinking_tokens": 15}});
    assert_eq!(usage(first.clone(), thinking), (100, 70, 20, 25, 15));
    let zeros = json!({
        "input_tokens": 0, "cache_read_input_tokens": null, "cache_creation_input_tokens": 0, "output_tokens": 25,
    });
    assert_eq!(usage(first.clone(), zeros.clone()), (100, 70, 20, 25, 0));
    assert_eq!(usage(zeros, first.clone()), (100, 70, 20, 1, 0));
    assert_eq!(usage(first, Value::Null), (100, 70, 20, 1, 0));
    assert_eq!(
        usage(json!("x"), json!({"input_tokens": -1})),
        (0, 0, 0, 0, 0)
    );
}

#[test]
fn nothing_grows_without_a_bound() {
    let begin =
        json!({"type": "content_block_start", "content_block": {"type": "text", "text": ""}});
    let heard = hear(&vec![begin; super::super::blocks::MAX_BLOCKS + 1]);
    assert_eq!(code(heard), FailureCode::LlmInvalidResponse);

    let data = "x".repeat(everturn_proto::limits::MAX_TEXT_BYTES / 2 + 1);
    for blocks in [
        [redacted(0, &data), redacted(1, &data)],
        [thinking(0, "", &data), thinking(1, "", &data)],
        [tool(0, "a", &[&data, &data]), Vec::new()],
        [text(0, &[&data]), text(1, &[&data])],
    ] {
        let heard = hear_blocks(&blocks, "tool_use");
        assert_eq!(code(heard), FailureCode::LlmInvalidResponse);
    }
}
