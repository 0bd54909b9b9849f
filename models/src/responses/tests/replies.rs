//! What is sent, and what becomes of a reply.

use everturn_proto::{limits, words::FailureCode};

use super::*;
use crate::client::tests::context;

#[tokio::test]
async fn a_reply_with_thoughts_and_parallel_calls() {
    let thoughts = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]});
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "weather", "arguments": arguments});
    let output = [
        thoughts,
        message("I look."),
        call(
            "call_a",
            r#"{"city": "Oslo", "n": 123456789012345678901234567890}"#,
        ),
        call("call_b", ""),
        call("call_c", r#"{"city": "Ro"#),
    ];
    let thought = |index: u32, text: &str| {
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": index,
            "delta": text})
    };
    let events = [
        created(),
        json!({"type": "response.in_progress", "response": {"id": "resp_1"}}),
        thought(0, "First."),
        thought(1, "Then."),
        json!({"type": "response.new_kind_of_event"}),
        delta("I "),
        delta("look."),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{"}),
        completed(&output),
    ];
    let asked = ask(false, [Script::named(numbered(0, events))]).await;
    let reply = asked.reply.unwrap();
    let reasoned = |text: &str| Heard::Delta(Part::Reasoning, text.to_owned());
    let expected = [
        reasoned("First."),
        reasoned("\n\nThen."),
        said("I "),
        said("look."),
    ];
    assert_eq!(asked.heard, expected, "a plain response has no id to note");
    assert_eq!(reply.text, "I look.");
    assert_eq!(reply.reasoning, "First.\n\nThen.");
    let calls: Vec<_> = reply.tool_calls.iter().collect();
    assert_eq!(
        calls[0].arguments.as_str(),
        r#"{"city": "Oslo", "n": 123456789012345678901234567890}"#
    );
    assert_eq!(calls[1].arguments.as_str(), "{}");
    assert_eq!(
        calls[2].arguments.decode::<String>().unwrap(),
        r#"{"city": "Ro"#
    );
    assert_eq!(calls[2].call_id.as_deref(), Some("call_c"));
    let kept: Value = serde_json::from_str(&calls[0].signatures[0]).unwrap();
    assert_eq!(kept["encrypted_content"], "gAAA");
    assert!(calls[1].signatures.is_empty());
    let usage = reply.usage;
    assert_eq!((usage.input_tokens, usage.cached_tokens), (120, 100));
    assert_eq!((usage.output_tokens, usage.reasoning_tokens), (34, 30));
}

#[tokio::test]
async fn the_request_has_the_whole_context() {
    let mut messages = context();
    let thought =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
    let of_others = r#"{"type":"thinking","thinking":"x","signature":"y"}"#.to_owned();
    messages[1].tool_calls[0].signatures = vec![thought.to_string(), of_others];
    messages[1].tool_calls[0].signed_by = "p/model-1".into();
    let request = ModelRequest {
        max_output_tokens: Some(7),
        idempotency_key: "call-1".into(),
        ..request(messages)
    };
    let asked = ask_for(
        true,
        request,
        [Script::named([completed(&[message("Hi")])])],
    )
    .await;
    let (path, body) = &asked.seen[0];
    assert_eq!(path, "/v1/responses");
    for (key, expected) in [
        ("model", json!("model-1")),
        ("instructions", json!("Be brief.")),
        ("stream", json!(true)),
        ("store", json!(true)),
        ("background", json!(true)),
        ("max_output_tokens", json!(7)),
        ("include", json!(["reasoning.encrypted_content"])),
    ] {
        assert_eq!(body[key], expected, "{key}");
    }
    assert_eq!(body["tools"][0]["name"], "weather");
    let input = body["input"].as_array().unwrap();
    let kinds: Vec<_> = input
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    let (calls, results) = ("function_call", "function_call_output");
    let expected = [
        &["message", "reasoning", "message"][..],
        &[calls; 4],
        &[results; 4],
        &["message"],
    ];
    assert_eq!(kinds, expected.concat());
    assert_eq!(
        input[1], thought,
        "thoughts of other providers are left out"
    );
    assert_eq!(
        input[2],
        json!({"type": "message", "role": "assistant", "content": "Let me see."})
    );
    assert_eq!(input[3]["call_id"], "call_1");
    let arguments: Value = serde_json::from_str(input[3]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["city"], "Oslo");
    assert_eq!(
        input[7],
        json!({"type": results, "call_id": "call_1", "output": "{\"t\":12}"})
    );
}

#[tokio::test]
async fn a_plain_response_is_not_stored_at_the_provider() {
    let asked = ask(false, [Script::named([completed(&[message("Hi")])])]).await;
    let body = &asked.seen[0].1;
    assert_eq!(
        (&body["store"], body.get("background")),
        (&json!(false), None)
    );
    assert_eq!(asked.reply.unwrap().text, "Hi");
    assert_eq!(
        asked.heard,
        [said("Hi")],
        "what was not streamed is said at the end"
    );
}

#[tokio::test]
async fn a_call_without_a_name_is_not_made_in_the_background() {
    let events = [created(), completed(&[message("Hi")])];
    let nameless = request(vec![user("Hello")]);
    let asked = ask_for(true, nameless, [Script::named(events)]).await;
    let body = &asked.seen[0].1;
    assert_eq!(
        (&body["store"], body.get("background")),
        (&json!(false), None)
    );
    assert_eq!(asked.heard, [said("Hi")], "nobody would go on with it");
}

#[tokio::test]
async fn a_model_without_thoughts_is_asked_again_without() {
    let refusal = json!({"error": {"message": "Encrypted content is not supported with this model.",
        "type": "invalid_request_error", "param": "include", "code": null}});
    let whole = || Script::named([completed(&[message("Hi")])]);
    let server = Server::start([Script::status(400, refusal), whole(), whole()]).await;
    let client = client(server.base_url(), true);
    for _ in 0..2 {
        let mut nobody = |_: Part, _: &str| {};
        client.complete(hello(), &mut nobody).await.unwrap();
    }
    let has_thoughts: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| seen.body.get("include").is_some())
        .collect();
    assert_eq!(has_thoughts, [true, false, false], "it is remembered");
}

#[tokio::test]
async fn a_reply_at_the_limit_of_tokens_is_cut() {
    let mut response = response("incomplete", &[message("As far as")]);
    response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    let end = json!({"type": "response.incomplete", "response": response});
    let reply = ask(true, [Script::named([created(), end.clone()])])
        .await
        .reply
        .unwrap();
    assert!(reply.is_cut && reply.text == "As far as");
    let mut filtered = end;
    filtered["response"]["incomplete_details"]["reason"] = json!("content_filter");
    let reply = ask(true, [Script::named([created(), filtered])])
        .await
        .reply;
    assert_eq!(reply.unwrap_err().code, FailureCode::LlmContentPolicy);
}

#[tokio::test]
async fn a_reply_has_the_sources_of_its_texts() {
    let mut text = message("It rains.");
    text["content"][0]["annotations"] = json!([
        {"type": "url_citation", "url": "https://a.example/", "title": "A", "start_index": 0, "end_index": 9},
        {"type": "file_citation", "file_id": "file_1", "filename": "a.pdf", "index": 3},
    ]);
    for events in [
        vec![completed(&[text.clone()])],
        vec![
            json!({"type": "response.output_item.done", "output_index": 0, "item": text}),
            completed(&[]),
        ],
    ] {
        let reply = ask(false, [Script::named(events)]).await.reply.unwrap();
        let cited = reply.citations.into_iter().map(|it| [it.url, it.title]);
        let expected = [["https://a.example/", "A"], ["", "a.pdf"]];
        assert!(cited.eq(expected.map(|it| it.map(str::to_owned))));
    }
}

#[tokio::test]
async fn an_end_without_output_has_what_was_streamed() {
    let done = |index: u32, item: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let call =
        json!({"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"});
    let events = [
        delta("Hi"),
        done(1, call),
        done(0, message("Hi")),
        completed(&[]),
    ];
    let reply = ask(false, [Script::named(events)]).await.reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.tool_calls.len()), ("Hi", 1));
}

#[tokio::test]
async fn what_has_no_end_is_stopped() {
    let long = "x".repeat(limits::MAX_TEXT_BYTES / 2 + 1);
    let error = ask(
        true,
        [Script::named([created(), delta(&long), delta(&long)])],
    )
    .await;
    assert_eq!(
        error.reply.unwrap_err().code,
        FailureCode::LlmInvalidResponse
    );
    let calls = vec![
        json!({"type": "function_call", "name": "x", "arguments": "{}"});
        limits::MAX_TOOL_CALLS + 1
    ];
    let many = ask(true, [Script::named([completed(&calls)])]).await;
    assert_eq!(many.reply.unwrap().tool_calls.len(), limits::MAX_TOOL_CALLS);
}
