//! Replies of Gemini from their bytes.

// Literals read better in a test than references to them.
#![allow(clippy::needless_pass_by_value)]

use everturn_proto::{Json, words::FailureCode};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    error::ModelError,
    port::ModelReply,
    provider::ProviderKind,
    wire::tests::{read as read_bytes, split},
};

fn read<T: AsRef<[u8]>>(chunks: impl IntoIterator<Item = T>) -> Result<ModelReply, ModelError> {
    read_bytes(ProviderKind::Gemini, chunks)
}

/// Reads a stream of these frames.
fn stream(frames: &[Value]) -> Result<ModelReply, ModelError> {
    read(frames.iter().map(|frame| format!("data: {frame}\r\n\r\n")))
}

/// A frame with parts, and the counts of tokens that Google puts into each frame.
fn frame(parts: Value) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}}],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16},
    })
}

/// The last frame of a reply.
fn last(parts: Value, reason: &str) -> Value {
    let mut frame = frame(parts);
    frame["candidates"][0]["finishReason"] = reason.into();
    frame
}

fn call(city: &str) -> Value {
    json!({"functionCall": {"name": "weather", "args": {"city": city}}})
}

fn signed(city: &str, signature: &str) -> Value {
    let mut call = call(city);
    call["thoughtSignature"] = signature.into();
    call
}

/// The arguments and the signatures of each call.
fn calls(frames: &[Value]) -> Vec<(String, Vec<String>)> {
    let calls = stream(frames).unwrap().tool_calls.into_iter();
    let call = |call: crate::port::ModelToolCall| {
        assert_eq!((call.call_id, &*call.tool_name), (None, "weather"));
        (call.arguments.as_str().to_owned(), call.signatures)
    };
    calls.map(call).collect()
}

#[test]
fn every_call_is_a_call_of_its_own_with_its_signature() {
    let end = || last(json!([{"text": ""}]), "STOP");
    let thought = || frame(json!([{"text": "hm", "thought": true}]));
    let paris = |signatures: &[&str]| {
        let signatures = signatures.iter().map(|it| (*it).to_owned());
        (r#"{"city":"Paris"}"#.to_owned(), signatures.collect())
    };
    let rome = || (r#"{"city":"Rome"}"#.to_owned(), Vec::new());
    let one = [thought(), frame(json!([signed("Paris", "c2ln")])), end()];
    assert_eq!(calls(&one), [paris(&["c2ln"])]);
    let parallel = [frame(json!([signed("Paris", "c2ln"), call("Rome")])), end()];
    assert_eq!(calls(&parallel), [paris(&["c2ln"]), rome()]);
    let frames = [
        frame(json!([signed("Paris", "c2ln")])),
        frame(json!([call("Rome")])),
        frame(json!([call("Paris")])),
        end(),
    ];
    assert_eq!(calls(&frames), [paris(&["c2ln"]), rome(), paris(&[])]);
    // The signature of a thought is the signature of a call without a signature.
    let thought = json!({"text": "hm", "thought": true, "thoughtSignature": "dGhv"});
    let before = [frame(json!([thought, call("Paris"), call("Rome")])), end()];
    assert_eq!(calls(&before), [paris(&["dGhv"]), rome()]);
    let both = [frame(json!([thought, signed("Paris", "c2ln")])), end()];
    assert_eq!(calls(&both), [paris(&["c2ln"])]);
}

#[test]
fn ids_names_and_arguments_are_kept_as_written() {
    let written = r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]}},{"content":{"parts":[
        {"text":"a"},{"function_call":{"id":"abc123","name":"ping","args":{"n": 1.10}},"thought_signature":"c2ln"},
        {"functionCall":{"name":"ping"}},{"functionCall":{"name":"ping","args":"{\"a\":1}"}},{"functionCall":{}}
        ]},"finish_reason":"STOP"}],"usage_metadata":{"prompt_token_count":7}}"#;
    let one_line = written.replace('\n', "");
    // As an event, as a whole answer, and as a list.
    for body in [
        format!("data: {one_line}"),
        written.to_owned(),
        format!("[{written}\n]"),
    ] {
        let reply = read([&body]).unwrap();
        assert_eq!((&*reply.text, reply.usage.input_tokens), ("a", 7), "{body}");
        let calls = reply.tool_calls.iter();
        let calls: Vec<_> = calls
            .map(|it| {
                (
                    it.call_id.as_deref(),
                    it.arguments.as_str(),
                    it.signatures.len(),
                )
            })
            .collect();
        let expected = [
            (Some("abc123"), r#"{"n": 1.10}"#, 1),
            (None, "{}", 0),
            (None, r#"{"a":1}"#, 0),
        ];
        assert_eq!(calls, expected, "{body}");
    }
}

#[test]
fn a_list_in_place_of_a_stream_is_read() {
    let frames = json!([
        frame(json!([{"text": "HELLO"}])),
        {"usageMetadata": {"promptTokenCount": 1}},
        last(json!([{"text": "-1"}]), "STOP"),
    ]);
    let pretty = serde_json::to_string_pretty(&frames).unwrap();
    for chunk in [1, 7, pretty.len()] {
        assert_eq!(
            read(pretty.as_bytes().chunks(chunk)).unwrap().text,
            "HELLO-1"
        );
    }
    let cut = read([&pretty[..pretty.len() - 2]]).unwrap_err();
    assert_eq!(cut.code, FailureCode::LlmStreamCut);
    let error = json!([{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}]);
    let error = read([serde_json::to_string_pretty(&error).unwrap()]).unwrap_err();
    assert_eq!(error.code, FailureCode::LlmBadRequest);
}

#[test]
fn counts_of_later_frames_win_and_missing_counts_stay() {
    let counting = |counts: Value| json!({"usageMetadata": counts, "modelVersion": "m"});
    let usage = stream(&[
        counting(json!({"promptTokenCount": 1, "cachedContentTokenCount": 3})),
        last(json!([{"text": "HELLO"}]), "STOP"),
        counting(
            json!({"candidatesTokenCount": 20, "thoughtsTokenCount": 4, "toolUsePromptTokenCount": 2}),
        ),
        counting(json!({})),
    ]);
    let usage = usage.unwrap().usage;
    assert_eq!((usage.input_tokens, usage.cached_tokens), (13, 3));
    assert_eq!((usage.output_tokens, usage.reasoning_tokens), (24, 4));
}

#[test]
fn ends_that_are_no_answer_are_errors_with_their_reason() {
    let half = || frame(json!([{"text": "HELL"}]));
    let refused = |reason: &str| json!({"promptFeedback": {"blockReason": reason, "blockReasonMessage": "Not this."}});
    let mut malformed = json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]});
    malformed["candidates"][0]["finishMessage"] = "print(default_api)".into();
    let busy = json!({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"});
    let partial = json!([{"functionCall": {"name": "ping", "willContinue": true}}]);
    for (frames, expected, words) in [
        (
            vec![refused("PROHIBITED_CONTENT")],
            FailureCode::LlmContentPolicy,
            "PROHIBITED_CONTENT: Not this.",
        ),
        (
            vec![refused("OTHER")],
            FailureCode::LlmContentPolicy,
            "OTHER: Not this.",
        ),
        (
            vec![half(), json!({"candidates": [{"finishReason": "SAFETY"}]})],
            FailureCode::LlmContentPolicy,
            "SAFETY",
        ),
        (
            vec![malformed],
            FailureCode::LlmInvalidResponse,
            "MALFORMED_FUNCTION_CALL: print(default_api)",
        ),
        (vec![half()], FailureCode::LlmStreamCut, "ended before"),
        (
            vec![half(), last(json!([]), "FINISH_REASON_UNSPECIFIED")],
            FailureCode::LlmStreamCut,
            "ended before",
        ),
        (
            vec![half(), json!({"error": busy})],
            FailureCode::LlmOverloaded,
            "overloaded",
        ),
        (
            vec![last(json!([]), "STOP")],
            FailureCode::LlmEmptyReply,
            "STOP",
        ),
        (
            vec![frame(partial)],
            FailureCode::LlmInvalidResponse,
            "streamFunctionCallArguments",
        ),
    ] {
        let error = stream(&frames).unwrap_err();
        assert_eq!(error.code, expected, "{frames:?}");
        assert!(error.message.contains(words), "{}", error.message);
    }
    let unspecified = json!({"promptFeedback": {"blockReason": "BLOCK_REASON_UNSPECIFIED"}});
    let reply = stream(&[unspecified, half(), last(json!([]), "NEW_WORD")]);
    assert_eq!(reply.unwrap().text, "HELL");
}

#[test]
fn a_reply_cut_in_its_thoughts_is_cut_and_a_call_in_a_cut_reply_is_whole() {
    let thought = frame(json!([{"text": "hm", "thought": true}]));
    let reply = stream(&[thought, last(json!([]), "MAX_TOKENS")]).unwrap();
    assert_eq!(
        (&*reply.text, &*reply.reasoning, reply.is_cut),
        ("", "hm", true)
    );
    let reply = stream(&[last(json!([call("Paris")]), "MAX_TOKENS")]).unwrap();
    assert_eq!(
        reply.tool_calls[0].arguments.as_str(),
        r#"{"city":"Paris"}"#
    );
}

#[test]
fn the_sources_of_a_search_are_kept() {
    for (grounding, chunks) in [
        ("groundingMetadata", "groundingChunks"),
        ("grounding_metadata", "grounding_chunks"),
    ] {
        let mut frame = last(json!([{"text": "It rains."}]), "STOP");
        frame["candidates"][0][grounding] =
            json!({chunks: [{"web": {"uri": "https://a.example/", "title": "a.example"}}]});
        frame["candidates"][0]["citationMetadata"] =
            json!({"citationSources": [{"uri": "https://b.example/", "startIndex": 1}]});
        let cited = stream(&[frame]).unwrap().citations.into_iter();
        let cited: Vec<_> = cited.map(|it| (it.url, it.title)).collect();
        let expected = [
            ("https://a.example/", "a.example"),
            ("https://b.example/", ""),
        ];
        assert_eq!(
            cited,
            expected.map(|(url, title)| (url.to_owned(), title.to_owned()))
        );
    }
}

#[test]
fn code_and_files_are_shown_in_the_text() {
    let parts = json!([
        {"text": "Look:"},
        {"executableCode": {"language": "PYTHON", "code": "print('```')\n"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "```\n"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_DEADLINE_EXCEEDED"}},
        {"text": "So "},
        {"unheardOf": {"a": 1}},
        {"text": "three."},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"fileData": {"fileUri": "gs://x"}},
    ]);
    assert_eq!(
        stream(&[last(parts, "STOP")]).unwrap().text,
        "Look:\n\n````python\nprint('```')\n````\n\n````\n```\n````\n\n```\nOUTCOME_DEADLINE_EXCEEDED\n```\n\nSo \
         three.\n\n(Here the reply had a file of type image/png, which is not kept.)\n\n(Here the reply had a file: \
         gs://x)"
    );
}

/// A part of a reply.
fn any_part() -> impl Strategy<Value = Value> {
    let id = prop::option::of("[a-z0-9]{1,8}");
    let arguments = prop::option::of(("[a-zé\"\\\\]{0,6}", any::<u64>()));
    let signature = prop::option::of("[a-zA-Z0-9+/]{4}");
    let call = (id, arguments, signature).prop_map(|(id, arguments, signature)| {
        let mut part = json!({"functionCall": {"name": "weather"}});
        if let Some(id) = id {
            part["functionCall"]["id"] = id.into();
        }
        if let Some((text, number)) = arguments {
            part["functionCall"]["args"] = json!({"a": text, "n": number});
        }
        if let Some(signature) = signature {
            part["thoughtSignature"] = signature.into();
        }
        part
    });
    prop_oneof![
        "[a-z é\n😀]{0,8}".prop_map(|text| json!({"text": text})),
        "[a-z é\n😀]{0,8}".prop_map(|text| json!({"text": text, "thought": true})),
        "[a-z]{1,8}"
            .prop_map(|code| json!({"executableCode": {"language": "PYTHON", "code": code}})),
        call,
    ]
}

/// A frame that says nothing about the reply.
fn any_noise() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({"usageMetadata": {"promptTokenCount": 11}, "modelVersion": "m"}),
        json!({"responseId": "x", "candidates": []}),
        json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "no"}]}, "finishReason": "STOP"}]}),
        json!({"candidates": [{"content": {"parts": [{"unheardOf": {}}], "role": "model"}, "tokenCount": 1}]}),
        json!({"promptFeedback": {"safetyRatings": []}, "usageMetadata": {}, "message": null}),
    ])
}

/// Writes the frames as events or as a list, in camelCase or in snake_case.
fn written(frames: &[Value], is_list: bool, is_snake: bool) -> String {
    let body = if is_list {
        serde_json::to_string_pretty(frames).unwrap()
    } else {
        let events = frames.iter().map(|frame| format!("data: {frame}\r\n\r\n"));
        events.collect()
    };
    let names = [
        ("\"functionCall\"", "\"function_call\""),
        ("\"thoughtSignature\"", "\"thought_signature\""),
        ("\"executableCode\"", "\"executable_code\""),
        ("\"finishReason\"", "\"finish_reason\""),
        ("\"usageMetadata\"", "\"usage_metadata\""),
    ];
    let names = names.into_iter().filter(|_| is_snake);
    names.fold(body, |body, (camel, snake)| body.replace(camel, snake))
}

/// Returns the reply, or the code of its error. The arguments have no spaces between their parts.
fn without_spaces(reply: Result<ModelReply, ModelError>) -> Result<ModelReply, FailureCode> {
    let mut reply = reply.map_err(|error| error.code)?;
    for call in &mut reply.tool_calls {
        call.arguments = Json::parse(call.arguments.canonical()).unwrap();
    }
    Ok(reply)
}

proptest! {
    #[test]
    fn a_reply_is_the_same_however_it_arrives_and_a_cut_reply_is_an_error(
        parts in prop::collection::vec(any_part(), 0..8),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any_noise()), 0..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        end in any::<prop::sample::Index>(),
        (is_list, is_snake) in any::<(bool, bool)>(),
    ) {
        let expected = without_spaces(stream(&[frame(json!(parts)), last(json!([]), "STOP")]));
        let mut frames: Vec<Value> = parts.iter().map(|part| frame(json!([part]))).collect();
        frames.push(last(json!([{"text": ""}]), "STOP"));
        for (at, noise) in noise {
            frames.insert(at.index(frames.len() + 1), noise);
        }
        let body = written(&frames, is_list, is_snake);
        let reply = without_spaces(read(split(body.as_bytes(), &cuts)));
        prop_assert_eq!(&reply, &expected, "{}", body);
        let cut = &body.as_bytes()[..end.index(body.len())];
        match read(split(cut, &cuts)) {
            Err(error) if error.code == FailureCode::LlmStreamCut => {}
            // Only the counts of tokens can be missing.
            rest => prop_assert_eq!(&without_spaces(rest), &expected, "{}", body),
        }
    }

    #[test]
    fn no_bytes_panic(
        parts in prop::collection::vec("[\\[\\]{}:,\"]|data: |\r?\n|null|-1|\"(candidates|content|parts|text|functionCall|args|usageMetadata|promptTokenCount|finishReason)\":|\"STOP\"", 0..40),
        value in some_value(),
    ) {
        let _any = read([parts.concat()]);
        let _any = stream(&[value]);
    }
}

/// A frame with the names of Gemini's fields, and with values of wrong types.
fn some_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z_]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 4, |inner| {
        let name = "candidates|content|parts|text|thought|functionCall|function_call|id|name|args|finishReason|usageMetadata|promptTokenCount|promptFeedback|blockReason|executableCode|code|inlineData|index";
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => prop::collection::hash_map(name, inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}
