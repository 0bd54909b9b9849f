//! Turns on Anthropic's wire.

use everturn_proto::{
    limits,
    words::{FailureCode, MessageRole},
};
use everturn_store::ContextMessage;
use everturn_stream::Part;
use serde_json::{Value, json};

use super::{Script, Server, ask, call, client, context, hear, request, result, user};
use crate::provider::ProviderKind;

fn start() -> Value {
    let usage = json!({"input_tokens": 90, "cache_read_input_tokens": 10, "output_tokens": 1});
    json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage}})
}

fn block(index: u32, block: &Value, deltas: &[Value]) -> Vec<Value> {
    let mut events =
        vec![json!({"type": "content_block_start", "index": index, "content_block": block})];
    events.extend(
        deltas
            .iter()
            .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
    );
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

fn text(index: u32, pieces: &[&str]) -> Vec<Value> {
    let deltas: Vec<_> = pieces
        .iter()
        .map(|text| json!({"type": "text_delta", "text": text}))
        .collect();
    block(index, &json!({"type": "text", "text": ""}), &deltas)
}

fn tool(index: u32, id: &str, pieces: &[&str]) -> Vec<Value> {
    let deltas: Vec<_> = pieces
        .iter()
        .map(|json| json!({"type": "input_json_delta", "partial_json": json}))
        .collect();
    block(
        index,
        &json!({"type": "tool_use", "id": id, "name": "weather", "input": {}}),
        &deltas,
    )
}

fn end(reason: &str) -> [Value; 2] {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 25}});
    [delta, json!({"type": "message_stop"})]
}

fn script(blocks: impl IntoIterator<Item = Vec<Value>>, reason: &str) -> Script {
    let blocks = blocks.into_iter().flatten();
    Script::named(
        [start(), json!({"type": "ping"})]
            .into_iter()
            .chain(blocks)
            .chain(end(reason)),
    )
}

/// A reply with a short text.
fn answer() -> Script {
    script([text(0, &["Ok."])], "end_turn")
}

#[tokio::test]
async fn a_turn_with_parallel_calls() {
    let script = script(
        [
            text(0, &["I will ", "look."]),
            tool(
                1,
                "toolu_1",
                &["", r#"{"city": "Oslo", "#, r#""id": 9007199254740993}"#],
            ),
            tool(2, "toolu_2", &[]),
        ],
        "tool_use",
    );
    let (server, (deltas, reply)) = ask(ProviderKind::Anthropic, script).await;
    let reply = reply.unwrap();
    assert_eq!(
        deltas,
        [
            (Part::Text, "I will ".to_owned()),
            (Part::Text, "look.".to_owned()),
            (Part::Call(0), "weather\n{\"city\": \"Oslo\", ".to_owned()),
            (Part::Call(0), "\"id\": 9007199254740993}".to_owned()),
        ]
    );
    assert_eq!(reply.text, "I will look.");
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.output_tokens),
        (100, 25)
    );
    assert_eq!(reply.usage.cached_tokens, 10);
    let calls: Vec<_> = reply
        .tool_calls
        .iter()
        .map(|call| (call.call_id.as_deref().unwrap(), call.arguments.as_str()))
        .collect();
    assert_eq!(
        calls,
        [
            ("toolu_1", r#"{"city": "Oslo", "id": 9007199254740993}"#),
            ("toolu_2", "{}")
        ]
    );
    let seen = server.seen().remove(0);
    assert_eq!(seen.path, "/v1/messages");
    assert_eq!(seen.headers["x-api-key"], super::KEY);
    assert_eq!(seen.headers["anthropic-version"], "2023-06-01");
    assert!(
        seen.body["max_tokens"].as_u64().unwrap() > 0,
        "Anthropic wants a limit"
    );
}

#[tokio::test]
async fn the_request_holds_the_whole_context() {
    let server = Server::start([answer()]).await;
    let mut messages = context();
    // From a provider whose ids Anthropic refuses.
    messages[1].tool_calls[0].call_id = "functions.weather:0".into();
    hear(
        &client(ProviderKind::Anthropic, server.base_url()),
        request(messages),
    )
    .await
    .1
    .unwrap();
    let body = server.seen().remove(0).body;
    assert_eq!(body["model"], "model-1");
    let mark = json!({"type": "ephemeral"});
    let last = |text: &str| json!({"type": "text", "text": text, "cache_control": mark});
    assert_eq!(body["system"], json!([last("Be brief.")]));
    assert_eq!(body["tools"][0]["name"], "weather");
    assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
    let tool_use = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: &str, content: &str| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let error = |id: &str, content: &str| {
        let mut result = result(id, content);
        result["is_error"] = json!(true);
        result
    };
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [last("Weather?")]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Let me see."},
                tool_use("call_000000000001", "weather", json!({"city": "Oslo", "id": 9_007_199_254_740_993_u64})),
                tool_use("call_2", "weather", json!({"invalid_arguments": "{\"city\":\"Ro"})),
                tool_use("call_3", "no_such_tool", json!({})),
                tool_use("call_4", "weather", json!({})),
            ]},
            {"role": "user", "content": [
                result("call_000000000001", r#"{"t":12}"#),
                result("call_2", "plain text"),
                error("call_3", r#"Error: {"error":"There is no tool."}"#),
                error("call_4", "Error: the call was not carried out to its end; there is no result."),
                last("And now?"),
            ]},
        ])
    );
}

#[tokio::test]
async fn thinking_goes_back_signed_with_its_call() {
    let thinking = block(
        0,
        &json!({"type": "thinking", "thinking": "", "signature": ""}),
        &[
            json!({"type": "thinking_delta", "thinking": "Hm, "}),
            json!({"type": "thinking_delta", "thinking": "weather."}),
            json!({"type": "signature_delta", "signature": "c2ln"}),
        ],
    );
    let redacted = block(1, &json!({"type": "redacted_thinking", "data": "xyz"}), &[]);
    let first = script(
        [thinking, redacted, tool(2, "toolu_1", &["{}"])],
        "tool_use",
    );
    let server = Server::start([first, answer()]).await;
    let client = client(ProviderKind::Anthropic, server.base_url());
    let (deltas, reply) = hear(&client, request(vec![user("Weather?")])).await;
    let reply = reply.unwrap();
    assert_eq!(
        deltas,
        [
            (Part::Reasoning, "Hm, ".to_owned()),
            (Part::Reasoning, "weather.".to_owned()),
            (Part::Call(0), "weather\n{}".to_owned()),
        ]
    );
    assert_eq!(reply.reasoning, "Hm, weather.");

    let mut call = call(1, "weather", "{}");
    call.signatures.clone_from(&reply.tool_calls[0].signatures);
    call.signed_by = "p/model-1".into();
    let answer = ContextMessage {
        tool_calls: vec![call],
        tool_results: vec![result(1, "1", false)],
        ..ContextMessage::text(MessageRole::Assistant, "")
    };
    hear(&client, request(vec![user("Weather?"), answer]))
        .await
        .1
        .unwrap();
    assert_eq!(
        server.seen()[1].body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "Hm, weather.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "xyz"},
            {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}},
        ])
    );
}

#[tokio::test]
async fn a_context_that_begins_with_the_assistant_gets_a_user_before_it() {
    let server = Server::start([answer()]).await;
    let answer = ContextMessage {
        role: MessageRole::Assistant,
        ..user("Sunny.")
    };
    let request = request(vec![answer, user("Thanks")]);
    hear(&client(ProviderKind::Anthropic, server.base_url()), request)
        .await
        .1
        .unwrap();
    let roles: Vec<_> = server.seen()[0].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[tokio::test]
async fn an_error_event_is_the_error() {
    for (kind, expected) in [
        ("overloaded_error", FailureCode::LlmOverloaded),
        ("rate_limit_error", FailureCode::LlmRateLimited),
        ("api_error", FailureCode::LlmUnavailable),
        ("invalid_request_error", FailureCode::LlmBadRequest),
        ("authentication_error", FailureCode::LlmUnauthorized),
        ("new_error", FailureCode::LlmUnavailable),
    ] {
        let error = json!({"type": "error", "error": {"type": kind, "message": "Something."}});
        let events = [start()]
            .into_iter()
            .chain(text(0, &["Half"]))
            .chain([error]);
        let (_, (deltas, reply)) = ask(ProviderKind::Anthropic, Script::named(events)).await;
        assert_eq!(deltas.len(), 1);
        assert_eq!(reply.unwrap_err().code, expected, "{kind}");
    }
}

#[tokio::test]
async fn statuses_of_anthropic() {
    let body = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    for (status, body, expected) in [
        (
            529,
            body("overloaded_error", "Overloaded"),
            FailureCode::LlmOverloaded,
        ),
        (
            400,
            body(
                "invalid_request_error",
                "prompt is too long: 209000 tokens > 200000",
            ),
            FailureCode::LlmContextTooLong,
        ),
        (
            413,
            body("request_too_large", "Too large."),
            FailureCode::LlmBadRequest,
        ),
        (
            403,
            body("permission_error", "No."),
            FailureCode::LlmUnauthorized,
        ),
    ] {
        let (server, (_, reply)) = ask(ProviderKind::Anthropic, Script::status(status, body)).await;
        assert_eq!(reply.unwrap_err().code, expected, "{status}");
        assert_eq!(server.seen().len(), 1, "no retries");
    }
}

#[tokio::test]
async fn a_stream_without_message_stop_was_cut() {
    let events = [start()].into_iter().chain(text(0, &["All of it."]));
    let (_, (_, reply)) = ask(ProviderKind::Anthropic, Script::named(events)).await;
    assert_eq!(reply.unwrap_err().code, FailureCode::LlmStreamCut);
}

#[tokio::test]
async fn cut_off_arguments_are_a_string() {
    let mut cut = tool(0, "toolu_1", &[r#"{"city": "Os"#]);
    cut.pop();
    let (_, (_, reply)) = ask(ProviderKind::Anthropic, script([cut], "max_tokens")).await;
    assert_eq!(
        reply.unwrap().tool_calls[0].arguments.as_str(),
        r#""{\"city\": \"Os""#
    );
}

#[tokio::test]
async fn too_long_arguments_end_the_call() {
    let piece = "x".repeat(limits::MAX_TEXT_BYTES / 2);
    let (_, (_, reply)) = ask(
        ProviderKind::Anthropic,
        script([tool(0, "t", &[&piece, &piece, &piece])], "tool_use"),
    )
    .await;
    assert_eq!(reply.unwrap_err().code, FailureCode::LlmInvalidResponse);
}

#[tokio::test]
async fn usage_has_the_cached_the_written_and_the_thinking_tokens() {
    let usage = json!({
        "input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 1,
    });
    let thinking = json!({"output_tokens": 25, "output_tokens_details": {"thinking_tokens": 15}});
    let begin = json!({"type": "message_start", "message": {"usage": usage}});
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": thinking}),
        json!({"type": "message_stop"}),
    ];
    let events = [begin].into_iter().chain(text(0, &["Ok."]));
    let script = Script::named(events.chain(end));
    let usage = ask(ProviderKind::Anthropic, script)
        .await
        .1
        .1
        .unwrap()
        .usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (100, 25));
    assert_eq!((usage.cached_tokens, usage.cache_write_tokens), (70, 20));
    assert_eq!(usage.reasoning_tokens, 15);
}

#[tokio::test]
async fn another_model_gets_no_thinking_back() {
    for (signed_by, blocks) in [
        ("p/model-1", 2),
        ("", 1),
        ("p/model-2", 1),
        ("q/model-1", 1),
    ] {
        let server = Server::start([answer()]).await;
        let mut call = call(1, "weather", "{}");
        let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
        call.signatures = vec![thinking.to_string()];
        call.signed_by = signed_by.into();
        let answer = ContextMessage {
            tool_calls: vec![call],
            role: MessageRole::Assistant,
            ..user("")
        };
        let client = client(ProviderKind::Anthropic, server.base_url());
        let request = request(vec![user("Weather?"), answer]);
        hear(&client, request).await.1.unwrap();
        let content = server.seen().remove(0).body["messages"][1]["content"].take();
        assert_eq!(
            content.as_array().unwrap().len(),
            blocks,
            "{signed_by}: {content}"
        );
    }
}
