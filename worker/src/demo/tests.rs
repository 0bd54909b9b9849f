//! The demo model, by its rules and over its wire.

use std::{collections::BTreeMap, time::Instant};

use everturn_models::{
    ModelClient, ModelReply, ModelRequest, OfferedTool, Provider, ProviderKind, StreamingClient,
};
use everturn_proto::{turn::ToolCall, words::MessageRole};
use everturn_store::{ContextMessage, ToolResult};
use everturn_stream::Part;
use everturn_tools::{ToolContext, ToolRegistry, builtin};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

pub(super) fn tool_context() -> ToolContext {
    ToolContext {
        execution_id: "exec_0123456789ab".into(),
        ..ToolContext::by_hand()
    }
}

const TOOLS: [&str; 3] = ["calculate", "current_time", "work_plan"];

fn ask_with(tools: &[&str], messages: impl Into<Value>) -> wire::Reply {
    let messages: Value = messages.into();
    let tools: Vec<Value> = tools
        .iter()
        .map(|name| json!({"type": "function", "function": {"name": name}}))
        .collect();
    let request = json!({"model": "demo", "messages": messages, "tools": tools});
    rules::reply(&serde_json::from_value(request).unwrap())
}

fn ask(message: &str) -> wire::Reply {
    ask_with(&TOOLS, json!([{"role": "user", "content": message}]))
}

fn calls(message: &str) -> Vec<(String, Value)> {
    ask(message)
        .calls
        .into_iter()
        .map(|call| (call.tool, call.arguments))
        .collect()
}

const SAMPLE: &str = "What is 21 * 2, and what time is it in Tokyo?";

#[test]
fn the_sample_makes_exactly_two_parallel_calls() {
    let reply = ask(SAMPLE);
    assert_eq!(
        reply.text,
        "I need to calculate 21 * 2 and look up the time in Tokyo."
    );
    let calls: Vec<_> = reply
        .calls
        .iter()
        .map(|call| (call.tool.as_str(), &call.arguments))
        .collect();
    assert_eq!(
        calls,
        [
            ("calculate", &json!({"expression": "21 * 2"})),
            ("current_time", &json!({"time_zone": "Asia/Tokyo"})),
        ]
    );
    assert_eq!(reply, ask(SAMPLE), "the same request gets the same reply");
}

#[test]
fn sums_are_found_and_dates_are_not() {
    for (message, expected) in [
        ("What is 21*2?", &["21*2"][..]),
        ("2+2=4 and (1 + 2) / 3.", &["2+2", "(1 + 2) / 3"]),
        ("-5 - -3, 2.5^2", &["-5 - -3", "2.5^2"]),
        ("on 2026-07-31 or 31/7/2026 at 10:30", &[]),
        ("24 hours, - 5 apples, +49 170, a - b", &[]),
    ] {
        let found: Vec<_> = calls(message)
            .into_iter()
            .map(|(_, arguments)| arguments["expression"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(found, expected, "{message}");
    }
}

#[test]
fn times_are_asked_for_by_city_in_the_order_of_the_message() {
    let zones = |message: &str| -> Vec<String> {
        let zone =
            |(_, arguments): (String, Value)| arguments["time_zone"].as_str().unwrap().to_owned();
        calls(message).into_iter().map(zone).collect()
    };
    assert_eq!(
        zones("time in Oslo, New York and Europe/Berlin"),
        ["Europe/Oslo", "America/New_York", "Europe/Berlin"]
    );
    assert_eq!(zones("What time is it?"), ["UTC"]);
    assert!(zones("I love Paris").is_empty());
}

#[test]
fn plans_are_made() {
    let plan =
        json!({"action": "create", "title": "a picnic", "steps": ["buy bread", "find a meadow"]});
    assert_eq!(
        calls("Plan a picnic: buy bread, find a meadow. What is 1/0?"),
        [
            ("calculate".to_owned(), json!({"expression": "1/0"})),
            ("work_plan".to_owned(), plan)
        ]
    );
    assert!(calls("The planet explains: nothing.").is_empty());
}

#[test]
fn any_offered_tool_can_be_called_by_name() {
    let reply = ask_with(
        &["test_once"],
        json!([{"role": "user", "content": r#"call test_once {"effect": true, "sleep_ms": 5-} no, call test_once {"sleep_ms": 5}, call me"#}]),
    );
    let calls: Vec<_> = reply
        .calls
        .iter()
        .map(|call| (call.tool.as_str(), &call.arguments))
        .collect();
    assert_eq!(calls, [("test_once", &json!({"sleep_ms": 5}))]);
    assert!(
        ask("call test_once {}").calls.is_empty(),
        "it is not offered"
    );
}

#[test]
fn only_offered_tools_are_asked_for() {
    let reply = ask_with(&["calculate"], json!([{"role": "user", "content": SAMPLE}]));
    assert_eq!(reply.calls.len(), 1);
    let reply = ask_with(&[], json!([{"role": "user", "content": "2 + 2"}]));
    assert!(reply.calls.is_empty());
    assert!(reply.text.ends_with("You said: “2 + 2”"), "{}", reply.text);
}

#[test]
fn without_a_match_it_explains_itself() {
    let reply = ask("Hello!");
    assert!(reply.calls.is_empty());
    assert!(reply.text.starts_with(
        "I am Everturn's demo model: a set of rules, not a language model. Ask me to calculate"
    ));
    assert!(reply.text.ends_with("You said: “Hello!”"));
    assert!(ask(&"é".repeat(5000)).text.len() < 1500);
}

fn answered(results: &[(&str, Value, &str)]) -> Vec<Value> {
    let call = |(index, (tool, arguments, _)): (usize, &(&str, Value, &str))| json!({"id": format!("c{index}"), "type": "function", "function": {"name": tool, "arguments": arguments.to_string()}});
    let calls: Vec<Value> = results.iter().enumerate().map(call).collect();
    let mut messages = vec![
        json!({"role": "user", "content": "1 + 1"}),
        json!({"role": "assistant", "content": "2."}),
        json!({"role": "user", "content": SAMPLE}),
        json!({"role": "assistant", "content": "I need to …", "tool_calls": calls}),
    ];
    let result = |(index, (_, _, result)): (usize, &(&str, Value, &str))| json!({"role": "tool", "tool_call_id": format!("c{index}"), "content": result});
    messages.extend(results.iter().enumerate().map(result));
    messages
}

#[test]
fn results_become_the_answer() {
    let time =
        r#"{"time_zone":"Asia/Tokyo","time":"2026-08-01T05:30:05+09:00","weekday":"Saturday"}"#;
    let plan = r#"{"plan_id":"plan_0123456789ab","title":"Trip","steps":[{"step_number":1,"description":"Pack","status":"pending"}]}"#;
    let messages = answered(&[
        (
            "calculate",
            json!({"expression": "21 * 2"}),
            r#"{"expression":"21 * 2","value":"42"}"#,
        ),
        ("current_time", json!({"time_zone": "Asia/Tokyo"}), time),
        ("work_plan", json!({}), plan),
        (
            "calculate",
            json!({"expression": "1 / 0"}),
            r#"Error: {"error":"division by zero"}"#,
        ),
        (
            "current_time",
            json!({"time_zone": "Atlantis"}),
            "Error: There is no such zone.",
        ),
        ("other", json!({}), "plain text"),
        ("other", json!({}), "Error: the call was not carried out"),
    ]);
    let reply = ask_with(&TOOLS, messages);
    assert!(reply.calls.is_empty());
    assert_eq!(
        reply.text,
        "21 * 2 = 42. In Tokyo it is 05:30 on Saturday, 2026-08-01 (Asia/Tokyo). I made the plan “Trip”. I could \
         not calculate 1 / 0: division by zero. I could not look up the time in Atlantis: There is no such zone. The \
         tool `other` returned: plain text. I could not call other: the call was not carried out. (I am Everturn's \
         demo model: a set of rules, not a language model.)"
    );
}

#[test]
fn a_message_that_joins_a_turn_is_heard() {
    let mut messages = answered(&[(
        "calculate",
        json!({"expression": "1+1"}),
        r#"{"expression":"1+1","value":"2"}"#,
    )]);
    messages.push(json!({"role": "user", "content": "Thanks"}));
    let reply = ask_with(&TOOLS, messages.clone());
    assert!(
        reply.text.starts_with("1+1 = 2.") && reply.text.ends_with("You also said: “Thanks”"),
        "{}",
        reply.text
    );
    messages.pop();
    messages.push(json!({"role": "user", "content": [{"type": "text", "text": "and 3 + 3"}]}));
    let reply = ask_with(&TOOLS, messages);
    assert_eq!(reply.calls[0].arguments, json!({"expression": "3 + 3"}));
}

proptest! {
    #[test]
    fn any_message_gets_a_reply(message in "(\\PC|plan|call calculate |\\{\\}|time in | |İ){0,30}") {
        prop_assert!(!ask(&message).text.is_empty());
    }
}

fn client(demo: &DemoModel) -> StreamingClient {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let provider = Provider {
        base_url: Some(demo.base_url()),
        api_key: Some("demo".to_owned()),
        ..Provider::new(ProviderKind::OpenAi)
    };
    StreamingClient::new(&BTreeMap::from([("demo".to_owned(), provider)])).unwrap()
}

async fn complete(
    client: &StreamingClient,
    messages: Vec<ContextMessage>,
) -> (Vec<(Part, String)>, ModelReply) {
    let tools = ToolRegistry::of(builtin::all()).unwrap();
    let offered = tools.specs(TOOLS, tool_context().asker()).await.unwrap();
    let offered = offered.into_iter().map(|spec| OfferedTool {
        name: spec.name,
        description: spec.description,
        parameters: spec.parameters,
    });
    let request = ModelRequest {
        provider: "demo".into(),
        model: "demo".into(),
        instructions: Some("Help.".into()),
        messages,
        tools: offered.collect(),
        max_output_tokens: None,
        ..ModelRequest::default()
    };
    let mut deltas = Vec::new();
    let reply = client
        .complete(request, &mut |part: Part, piece: &str| {
            deltas.push((part, piece.to_owned()));
        })
        .await
        .unwrap();
    (deltas, reply)
}

fn message(role: MessageRole, content: &str) -> ContextMessage {
    ContextMessage::text(role, content)
}

#[tokio::test]
async fn a_whole_turn_through_the_model_client() {
    let demo = DemoModel::start_with(Duration::from_millis(1))
        .await
        .unwrap();
    let client = client(&demo);
    let (deltas, reply) = complete(&client, vec![message(MessageRole::User, SAMPLE)]).await;
    let words = deltas.iter().filter(|(part, _)| *part == Part::Text);
    assert_eq!(words.count(), 14, "word by word");
    assert_eq!(
        reply.text,
        "I need to calculate 21 * 2 and look up the time in Tokyo."
    );
    assert!(reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0);
    assert_eq!(reply.tool_calls.len(), 2);

    // The real tools run, and the answer is made of their results.
    let tools = ToolRegistry::of(builtin::all()).unwrap();
    let mut asked = message(MessageRole::Assistant, &reply.text);
    for (index, call) in reply.tool_calls.into_iter().enumerate() {
        let found = tools
            .find(&call.tool_name, tool_context().asker())
            .await
            .ok()
            .unwrap();
        assert_eq!(found.validate(&call.arguments), Ok(()));
        let result = found
            .tool()
            .run(tool_context(), call.arguments.clone())
            .await
            .unwrap();
        let execution_id = format!("exec_{index:012}");
        asked.tool_results.push(ToolResult {
            execution_id: execution_id.clone(),
            call_id: call.call_id.clone().unwrap(),
            tool_name: call.tool_name.clone(),
            result,
            is_error: false,
        });
        asked.tool_calls.push(ToolCall {
            execution_id,
            call_id: call.call_id.unwrap(),
            tool_name: call.tool_name,
            tool_input: Some(call.arguments),
            ..ToolCall::default()
        });
    }
    let (deltas, reply) = complete(&client, vec![message(MessageRole::User, SAMPLE), asked]).await;
    assert!(reply.tool_calls.is_empty());
    assert!(
        reply.text.starts_with("21 * 2 = 42. In Tokyo it is "),
        "{}",
        reply.text
    );
    assert!(deltas.len() > 10);
}

#[tokio::test]
async fn words_come_with_a_pause() {
    let demo = DemoModel::start_with(Duration::from_millis(20))
        .await
        .unwrap();
    let start = Instant::now();
    let (deltas, _) = complete(&client(&demo), vec![message(MessageRole::User, SAMPLE)]).await;
    assert!(start.elapsed() >= Duration::from_millis(20) * u32::try_from(deltas.len()).unwrap());
}

#[tokio::test]
async fn what_is_no_request_is_an_error_as_openai_writes_it() {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let demo = DemoModel::start().await.unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}chat/completions", demo.base_url());
    for bad in ["{", "{}", r#"{"messages": 5}"#] {
        let response = http.post(&url).body(bad).send().await.unwrap();
        assert_eq!(response.status(), 400);
        let error: Value = response.json().await.unwrap();
        assert_eq!(error["error"]["type"], "invalid_request_error");
    }
}
