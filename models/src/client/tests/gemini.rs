//! Turns on Gemini's wire.

// Literals read better in a test than references to them.
#![allow(clippy::needless_pass_by_value)]

use everturn_proto::{
    limits,
    words::{FailureCode, MessageRole},
};
use everturn_store::ContextMessage;
use everturn_stream::Part;
use serde_json::{Value, json};

use super::{Script, Server, ask, call, client, context, hear, request, result, user};
use crate::{error::ModelError, port::ModelReply, provider::ProviderKind};

fn frame(parts: &[Value]) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

fn function(name: &str, args: Value) -> Value {
    json!({"functionCall": {"name": name, "args": args}})
}

fn end(reason: &str) -> Value {
    json!({
        "candidates": [{"content": {"role": "model"}, "finishReason": reason, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 20,
            "thoughtsTokenCount": 5, "totalTokenCount": 125,
        },
    })
}

/// A reply with a text.
fn hello() -> Script {
    Script::sse([frame(&[text("Hello")]), end("STOP")])
}

async fn listen(frames: impl IntoIterator<Item = Value>) -> super::Heard {
    ask(ProviderKind::Gemini, Script::sse(frames)).await.1
}

async fn reply(frames: impl IntoIterator<Item = Value>) -> ModelReply {
    listen(frames).await.1.unwrap()
}

async fn fail(frames: impl IntoIterator<Item = Value>) -> ModelError {
    listen(frames).await.1.unwrap_err()
}

#[tokio::test]
async fn a_turn_with_parallel_calls() {
    let thought = json!({"text": "Two cities.", "thought": true});
    let (deltas, reply) = listen([
        frame(&[thought]),
        frame(&[text("I will "), text("look.")]),
        frame(&[
            function("weather", json!({"city": "Oslo"})),
            function("weather", json!({"city": "東京"})),
        ]),
        frame(&[function("weather", json!({"city": "Oslo"}))]),
        end("STOP"),
    ])
    .await;
    let reply = reply.unwrap();
    let expected = [
        (Part::Reasoning, "Two cities."),
        (Part::Text, "I will "),
        (Part::Text, "look."),
        (Part::Call(0), "weather\n{\"city\":\"Oslo\"}"),
        (Part::Call(1), "weather\n{\"city\":\"東京\"}"),
        (Part::Call(2), "weather\n{\"city\":\"Oslo\"}"),
    ];
    assert_eq!(deltas, expected.map(|(part, text)| (part, text.to_owned())));
    let calls = reply.tool_calls.iter();
    let calls: Vec<_> = calls
        .map(|call| (call.call_id.as_deref(), call.arguments.as_str()))
        .collect();
    let oslo = (None, r#"{"city":"Oslo"}"#);
    // None of them is taken for a copy of another one.
    assert_eq!(calls, [oslo, (None, r#"{"city":"東京"}"#), oslo]);
    let usage = reply.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (100, 25));
    assert_eq!((usage.cached_tokens, usage.reasoning_tokens), (40, 5));
}

#[tokio::test]
async fn arguments_keep_their_digits_and_calls_their_ids() {
    let raw = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"fc_1","name":"weather","args":{"n": 123456789012345678901234567890}}}]}}]}"#;
    let script = Script::sse([raw.to_owned(), end("STOP").to_string()]);
    let (_, (_, reply)) = ask(ProviderKind::Gemini, script).await;
    let call = reply.unwrap().tool_calls.remove(0);
    assert_eq!(call.call_id.as_deref(), Some("fc_1"));
    assert_eq!(
        call.arguments.as_str(),
        r#"{"n": 123456789012345678901234567890}"#
    );
    // Without arguments there is no `args` at all.
    let call = json!({"functionCall": {"name": "now"}});
    let reply = reply_of(call).await;
    assert_eq!(reply.tool_calls[0].arguments.as_str(), "{}");
}

async fn reply_of(part: Value) -> ModelReply {
    reply([frame(&[part]), end("STOP")]).await
}

#[tokio::test]
async fn the_request_holds_the_whole_context() {
    let server = Server::start([hello()]).await;
    let mut messages = context();
    // An id of ours: Gemini gave none, and gets none back.
    let own = everturn_proto::ids::call_id("exec_000000000001");
    messages[1].tool_calls[0].call_id = own;
    hear(
        &client(ProviderKind::Gemini, server.base_url()),
        request(messages),
    )
    .await
    .1
    .unwrap();
    let body = server.seen().remove(0).body;
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
    let declared = &body["tools"][0]["functionDeclarations"][0];
    assert_eq!(declared["name"], "weather");
    assert_eq!(declared["parametersJsonSchema"]["type"], "object");
    let call = |id: &str, name: &str, args: Value| json!({"functionCall": {"id": id, "name": name, "args": args}});
    let result = |id: &str, name: &str, content: &str| {
        let response = json!({"name": name, "content": content});
        json!({"functionResponse": {"id": id, "name": name, "response": response}})
    };
    let mut first_call = call(
        "",
        "weather",
        json!({"city": "Oslo", "id": 9_007_199_254_740_993_u64}),
    );
    first_call["functionCall"]
        .as_object_mut()
        .unwrap()
        .remove("id");
    let mut first_result = result("", "weather", r#"{"t":12}"#);
    first_result["functionResponse"]
        .as_object_mut()
        .unwrap()
        .remove("id");
    assert_eq!(
        body["contents"],
        json!([
            {"role": "user", "parts": [text("Weather?")]},
            {"role": "model", "parts": [
                text("Let me see."),
                first_call,
                call("call_2", "weather", json!({"invalid_arguments": "{\"city\":\"Ro"})),
                call("call_3", "no_such_tool", json!({})),
                call("call_4", "weather", json!({})),
            ]},
            {"role": "user", "parts": [
                first_result,
                result("call_2", "weather", "plain text"),
                result("call_3", "no_such_tool", r#"Error: {"error":"There is no tool."}"#),
                result("call_4", "weather", "Error: the call was not carried out to its end; there is no result."),
            ]},
            {"role": "user", "parts": [text("And now?")]},
        ])
    );
}

#[tokio::test]
async fn a_signature_goes_back_with_its_call_to_the_model_that_made_it() {
    let mut signed = function("weather", json!({}));
    signed["thoughtSignature"] = json!("c2ln");
    let first = Script::sse([
        frame(&[signed, function("weather", json!({"a": 1}))]),
        end("STOP"),
    ]);
    let server = Server::start([first, hello(), hello()]).await;
    let client = client(ProviderKind::Gemini, server.base_url());
    let reply = hear(&client, request(vec![user("Weather?")]))
        .await
        .1
        .unwrap();
    assert_eq!(reply.tool_calls[0].signatures, ["c2ln"]);
    assert!(reply.tool_calls[1].signatures.is_empty());

    for (signed_by, expected) in [("p/model-1", json!("c2ln")), ("p/model-2", Value::Null)] {
        let mut call = call(1, "weather", "{}");
        call.signatures = vec!["c2ln".into()];
        call.signed_by = signed_by.into();
        let answer = ContextMessage {
            tool_calls: vec![call],
            tool_results: vec![result(1, "1", false)],
            ..ContextMessage::text(MessageRole::Assistant, "")
        };
        let request = request(vec![user("Weather?"), answer]);
        hear(&client, request).await.1.unwrap();
        let seen = server.seen().pop().unwrap();
        let part = &seen.body["contents"][1]["parts"][0];
        assert_eq!(part["thoughtSignature"], expected, "{signed_by}");
    }
}

#[tokio::test]
async fn an_end_without_a_reason_was_cut() {
    for frames in [
        vec![],
        vec![frame(&[text("Half")])],
        vec![frame(&[function("weather", json!({}))])],
    ] {
        let error = fail(frames).await;
        assert_eq!(error.code, FailureCode::LlmStreamCut);
    }
    let half = Script::sse([frame(&[text("Half")])]).then("data: {\"candid");
    let (_, (_, reply)) = ask(ProviderKind::Gemini, half).await;
    assert_eq!(reply.unwrap_err().code, FailureCode::LlmStreamCut);
    let broken = Script::sse([frame(&[text("Half")])]).then_abort();
    let (_, (_, reply)) = ask(ProviderKind::Gemini, broken).await;
    assert_eq!(reply.unwrap_err().code, FailureCode::LlmStreamCut);
}

#[tokio::test]
async fn a_refused_prompt_and_a_stopped_reply_are_the_content_policy() {
    let blocked =
        json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}});
    let error = fail([blocked]).await;
    assert_eq!(
        (error.code.clone(), error.is_retryable()),
        (FailureCode::LlmContentPolicy, false)
    );
    assert!(error.message.contains("PROHIBITED_CONTENT"), "{error}");
    for reason in ["SAFETY", "RECITATION", "BLOCKLIST", "SPII"] {
        let error = fail([frame(&[text("Half")]), end(reason)]).await;
        assert_eq!(error.code, FailureCode::LlmContentPolicy);
        assert!(error.message.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_call_that_gemini_could_not_write_is_an_invalid_reply() {
    for (reason, expected) in [
        ("MALFORMED_FUNCTION_CALL", FailureCode::LlmInvalidResponse),
        ("UNEXPECTED_TOOL_CALL", FailureCode::LlmInvalidResponse),
        ("OTHER", FailureCode::LlmEmptyReply),
        ("STOP", FailureCode::LlmEmptyReply),
    ] {
        let error = fail([end(reason)]).await;
        assert_eq!((error.code.clone(), error.is_retryable()), (expected, true));
        assert!(error.message.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_reply_at_the_limit_of_tokens_says_so() {
    let cut = reply([frame(&[text("Half")]), end("MAX_TOKENS")]).await;
    assert!(cut.is_cut && cut.text == "Half");
    assert!(!reply([frame(&[text("All")]), end("STOP")]).await.is_cut);
}

#[tokio::test]
async fn reasoning_that_is_all_there_is_counts_as_written() {
    let mut end = end("MAX_TOKENS");
    end["usageMetadata"] = json!({"promptTokenCount": 9, "thoughtsTokenCount": 64});
    let usage = reply([end]).await.usage;
    assert_eq!((usage.output_tokens, usage.reasoning_tokens), (64, 64));
}

#[tokio::test]
async fn a_frame_without_candidates_ends_nothing() {
    let counting = json!({"usageMetadata": {"promptTokenCount": 9}, "modelVersion": "m"});
    let reply = reply([
        counting.clone(),
        frame(&[text("All")]),
        counting,
        end("STOP"),
    ])
    .await;
    assert_eq!(reply.text, "All");
}

#[tokio::test]
async fn an_error_inside_the_stream_is_the_error() {
    for (status, word, expected) in [
        (503, "UNAVAILABLE", FailureCode::LlmUnavailable),
        (500, "INTERNAL", FailureCode::LlmUnavailable),
        (429, "RESOURCE_EXHAUSTED", FailureCode::LlmRateLimited),
        (400, "INVALID_ARGUMENT", FailureCode::LlmBadRequest),
    ] {
        let error = json!({"error": {"code": status, "message": "Why.", "status": word}});
        let error = fail([frame(&[text("Half")]), error, end("STOP")]).await;
        assert_eq!(error.code, expected, "{word}");
    }
}

#[tokio::test]
async fn too_much_is_left_out_or_ends_the_call() {
    let call = function("weather", json!({}));
    let frames = vec![frame(&[call]); limits::MAX_TOOL_CALLS + 1];
    let reply = reply(frames.into_iter().chain([end("STOP")])).await;
    assert_eq!(reply.tool_calls.len(), limits::MAX_TOOL_CALLS);
    let long = function("weather", json!({"x": "y".repeat(limits::MAX_TEXT_BYTES)}));
    let error = fail([frame(&[long]), end("STOP")]).await;
    assert_eq!(error.code, FailureCode::LlmInvalidResponse);
}
