//! Turns on OpenAI's wire.

use everturn_proto::{
    limits,
    words::{FailureCode, MessageRole},
};
use everturn_store::ContextMessage;
use everturn_stream::Part;
use serde_json::{Value, json};

use super::{Heard, Script, Server, ask, client, context, hear, request, user};
use crate::{port::ModelReply, provider::ProviderKind};

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn call_start(index: u32, id: &str, name: &str, arguments: &str) -> Value {
    let function = json!({"name": name, "arguments": arguments});
    delta(
        &json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
    )
}

fn call_more(index: u32, arguments: &str) -> Value {
    delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
}

fn stop(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn usage() -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": 120, "completion_tokens": 34, "total_tokens": 154}})
}

/// A short answer.
fn short() -> Script {
    let events = [delta(&json!({"content": "Hi"})), stop("stop")];
    let events = events.iter().map(Value::to_string);
    Script::sse(events.chain(["[DONE]".to_owned()]))
}

async fn listen(events: impl IntoIterator<Item = Value>) -> Heard {
    let events = events
        .into_iter()
        .map(|event| event.to_string())
        .chain(["[DONE]".to_owned()]);
    ask(ProviderKind::OpenAi, Script::sse(events)).await.1
}

async fn reply(events: impl IntoIterator<Item = Value>) -> ModelReply {
    listen(events).await.1.unwrap()
}

#[tokio::test]
async fn a_turn_with_parallel_calls() {
    let (deltas, reply) = listen([
        delta(&json!({"role": "assistant", "content": ""})),
        delta(&json!({"reasoning_content": "Two cities."})),
        delta(&json!({"content": "I will "})),
        delta(&json!({"content": "look — 東京."})),
        call_start(0, "call_a", "weather", ""),
        call_more(0, r#"{"city": "Oslo", "#),
        call_start(1, "call_b", "weather", r#"{"id":9007199254740993,"#),
        call_more(0, r#""n": 123456789012345678901234567890}"#),
        call_more(1, r#""city":"東京"}"#),
        stop("tool_calls"),
        usage(),
    ])
    .await;
    let reply = reply.unwrap();
    let expected = [
        (Part::Reasoning, "Two cities."),
        (Part::Text, "I will "),
        (Part::Text, "look — 東京."),
        (Part::Call(0), "weather\n{\"city\": \"Oslo\", "),
        (Part::Call(1), "weather\n{\"id\":9007199254740993,"),
        (Part::Call(0), "\"n\": 123456789012345678901234567890}"),
        (Part::Call(1), "\"city\":\"東京\"}"),
    ];
    assert_eq!(deltas, expected.map(|(part, text)| (part, text.to_owned())));
    assert_eq!(reply.text, "I will look — 東京.");
    assert_eq!(reply.reasoning, "Two cities.");
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.output_tokens),
        (120, 34)
    );
    let calls: Vec<_> = reply
        .tool_calls
        .iter()
        .map(|call| {
            (
                call.call_id.as_deref().unwrap(),
                &*call.tool_name,
                call.arguments.as_str(),
            )
        })
        .collect();
    // To the letter, beyond what 64 bits hold.
    assert_eq!(
        calls,
        [
            (
                "call_a",
                "weather",
                r#"{"city": "Oslo", "n": 123456789012345678901234567890}"#
            ),
            (
                "call_b",
                "weather",
                r#"{"id":9007199254740993,"city":"東京"}"#
            ),
        ]
    );
}

#[tokio::test]
async fn the_request_holds_the_whole_context() {
    let server = Server::start([short()]).await;
    let mut request = request(context());
    request.model = "vendor::Odd/Name-high".into();
    request.max_output_tokens = Some(77);
    hear(&client(ProviderKind::OpenAi, server.base_url()), request)
        .await
        .1
        .unwrap();
    let seen = server.seen().remove(0);
    assert_eq!(seen.path, "/v1/chat/completions");
    assert_eq!(
        seen.headers["authorization"],
        format!("Bearer {}", super::KEY)
    );
    let body = &seen.body;
    // The name to the letter, and nothing made of its ending.
    assert_eq!(body["model"], "vendor::Odd/Name-high");
    assert_eq!(body.get("reasoning_effort"), None);
    assert_eq!(
        (&body["stream"], &body["stream_options"]),
        (&json!(true), &json!({"include_usage": true}))
    );
    assert_eq!(body["max_tokens"], 77);
    assert_eq!(body["tools"][0]["function"]["name"], "weather");
    assert_eq!(
        body["tools"][0]["function"]["description"],
        "Tells the weather."
    );
    assert_eq!(
        body["tools"][0]["function"]["parameters"]["properties"],
        json!({"city": {"type": "string"}})
    );
    let function = |id: &str, name: &str, arguments: &str| json!({"type": "function", "id": id, "function": {"name": name, "arguments": arguments}});
    let result =
        |id: &str, content: &str| json!({"role": "tool", "tool_call_id": id, "content": content});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "Let me see.", "tool_calls": [
                function("call_1", "weather", r#"{"city":"Oslo","id":9007199254740993}"#),
                function("call_2", "weather", r#"{"invalid_arguments":"{\"city\":\"Ro"}"#),
                function("call_3", "no_such_tool", "{}"),
                function("call_4", "weather", "{}"),
            ]},
            result("call_1", r#"{"t":12}"#),
            result("call_2", "plain text"),
            result("call_3", r#"Error: {"error":"There is no tool."}"#),
            result("call_4", "Error: the call was not carried out to its end; there is no result."),
            {"role": "assistant", "content": "(The results of the tools are above.)"},
            {"role": "user", "content": "And now?"},
        ])
    );
}

#[tokio::test]
async fn without_tools_and_instructions_neither_is_sent() {
    let server = Server::start([short()]).await;
    let mut request = request(vec![user("")]);
    request.tools.clear();
    request.instructions = None;
    hear(&client(ProviderKind::OpenAi, server.base_url()), request)
        .await
        .1
        .unwrap();
    let body = server.seen().remove(0).body;
    assert_eq!(body.get("tools"), None);
    assert_eq!(body.get("max_tokens"), None);
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "(empty message)"}])
    );
}

#[tokio::test]
async fn an_empty_reply_is_an_error() {
    let error = listen([stop("stop")]).await.1.unwrap_err();
    assert_eq!(error.code, FailureCode::LlmEmptyReply);
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_call_without_index_is_a_call() {
    let function = json!({"name": "weather", "arguments": "{}"});
    let without_index =
        delta(&json!({"tool_calls": [{"id": "call_a", "type": "function", "function": function}]}));
    let calls = reply([without_index, stop("tool_calls")]).await.tool_calls;
    assert_eq!((calls.len(), &*calls[0].tool_name), (1, "weather"));
}

#[tokio::test]
async fn cut_off_arguments_are_a_string() {
    let reply = reply([
        call_start(0, "call_a", "weather", r#"{"city": "Os"#),
        stop("length"),
    ])
    .await;
    assert_eq!(
        reply.tool_calls[0].arguments.as_str(),
        r#""{\"city\": \"Os""#
    );
}

#[tokio::test]
async fn a_reply_at_the_limit_of_tokens_says_so() {
    for (reason, is_cut) in [("stop", false), ("length", true)] {
        let reply = reply([delta(&json!({"content": "Hi"})), stop(reason)]).await;
        assert_eq!(reply.is_cut, is_cut, "{reason}");
    }
}

/// The first part of the answer is an earlier message of the model. Providers want a user's message behind it.
#[tokio::test]
async fn a_model_whose_answer_was_cut_is_asked_to_go_on() {
    let said = |content: &str| ContextMessage {
        role: MessageRole::Assistant,
        ..user(content)
    };
    let cases = [
        (vec![user("Count."), said("1 2")], 1),
        (vec![user("Count."), said("1 2"), said("3 4")], 2),
        (vec![user("Count."), said("1 2"), user("Stop.")], 0),
        (context(), 0),
    ];
    for (messages, asked) in cases {
        let server = Server::start([short()]).await;
        let client = client(ProviderKind::OpenAi, server.base_url());
        hear(&client, request(messages)).await.1.unwrap();
        let sent = server.seen().remove(0).body["messages"].take();
        let is_go_on = |message: &&Value| {
            let content = message["content"].as_str().unwrap_or_default();
            message["role"] == "user" && content.contains("Go on exactly where it ended")
        };
        let messages = sent.as_array().unwrap();
        assert_eq!(messages.iter().filter(is_go_on).count(), asked, "{sent}");
    }
}

#[tokio::test]
async fn no_arguments_are_an_empty_object() {
    for arguments in ["", " ", "null"] {
        let reply = reply([
            call_start(0, "call_a", "now", arguments),
            stop("tool_calls"),
        ])
        .await;
        assert_eq!(reply.tool_calls[0].arguments.as_str(), "{}");
    }
    let cut = reply([call_start(0, "call_a", "now", ""), stop("length")]).await;
    assert_eq!(
        cut.tool_calls[0].arguments.as_str(),
        r#""""#,
        "cut off before the first letter"
    );
}

#[tokio::test]
async fn an_index_from_1_makes_no_call_up() {
    let events = [
        call_start(1, "call_a", "weather", ""),
        call_more(1, r#"{"city":"Oslo"}"#),
        stop("tool_calls"),
    ];
    let calls = reply(events).await.tool_calls;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].arguments.as_str(), r#"{"city":"Oslo"}"#);
}

#[tokio::test]
async fn calls_that_share_an_id_keep_their_own_arguments() {
    let events = [
        call_start(0, "x", "weather", r#"{"a":1}"#),
        call_start(1, "x", "weather", r#"{"a":2}"#),
        stop("tool_calls"),
    ];
    let calls = reply(events).await.tool_calls;
    assert_eq!(
        calls
            .iter()
            .map(|call| call.arguments.as_str())
            .collect::<Vec<_>>(),
        [r#"{"a":1}"#, r#"{"a":2}"#]
    );
}

#[tokio::test]
async fn too_much_text_ends_the_call() {
    let piece = delta(&json!({"content": "x".repeat(100_000)}));
    let (deltas, reply) = listen(vec![piece; limits::MAX_TEXT_BYTES / 100_000 + 2]).await;
    assert_eq!(reply.unwrap_err().code, FailureCode::LlmInvalidResponse);
    assert!(deltas.iter().map(|(_, text)| text.len()).sum::<usize>() <= limits::MAX_TEXT_BYTES);
}

#[tokio::test]
async fn the_calls_after_the_limit_are_left_out() {
    let calls = |count: usize| {
        let call = |index| call_start(index, &format!("call_{index}"), "weather", "{}");
        (0..u32::try_from(count).unwrap())
            .map(call)
            .chain([stop("tool_calls")])
            .collect::<Vec<_>>()
    };
    for more in [0, 1, 500] {
        let kept = reply(calls(limits::MAX_TOOL_CALLS + more)).await.tool_calls;
        assert_eq!(kept.len(), limits::MAX_TOOL_CALLS);
        assert!(kept.iter().all(|call| call.arguments.as_str() == "{}"));
    }
}

#[tokio::test]
async fn usage_has_the_cached_and_the_reasoning_tokens() {
    let usage = json!({"choices": [], "usage": {
        "prompt_tokens": 120, "completion_tokens": 34,
        "prompt_tokens_details": {"cached_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }});
    let said = delta(&json!({"content": "Hi"}));
    let events = || [&said, &stop("stop"), &usage].map(Value::to_string);
    for kind in [ProviderKind::OpenAi, ProviderKind::Azure] {
        let script = Script::sse(events().into_iter().chain(["[DONE]".to_owned()]));
        let usage = ask(kind, script).await.1.1.unwrap().usage;
        assert_eq!((usage.input_tokens, usage.cached_tokens), (120, 100));
        assert_eq!((usage.output_tokens, usage.reasoning_tokens), (34, 30));
    }
}
