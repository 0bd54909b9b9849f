//! The LLM calls of a turn: a developer reads what each call was sent and answered.

use std::sync::atomic::{AtomicUsize, Ordering};

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

use crate::{
    both::isolation::{bearer, get},
    embedded::fallback::ANSWER,
};

/// Returns the path of the calls of a conversation's only agent execution.
async fn calls_of(stack: &Stack, conversation: &str) -> String {
    let path = format!("/conversations/{conversation}/executions");
    let executions = stack.get(&path).await;
    let id = executions["executions"][0]["id"].as_str().unwrap();
    format!("{path}/{id}/calls")
}

#[tokio::test]
async fn a_developer_reads_what_each_call_was_sent_and_answered() {
    let asked = AtomicUsize::new(0);
    let model = Model::start(move |request: &Request| {
        if asked.fetch_add(1, Ordering::Relaxed) == 0 {
            return Reply::error(503, "away");
        }
        match request.results_since_user() {
            0 => Reply::text("I count.").call("calculate", &json!({"expression": "6 * 7"})),
            _ => Reply::text(ANSWER),
        }
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("6 times 7?").await;
    stack.ended(&conversation, 1).await;
    let path = calls_of(&stack, &conversation).await;
    let list = stack.get(&path).await;
    let calls = list["calls"].as_array().unwrap();
    let shown = |call: &Value| json!([call["step"], call["finish"], call["sent_messages"]]);
    let shown: Vec<_> = calls.iter().map(shown).collect();
    assert_eq!(shown, [json!([0, "tool_calls", 1]), json!([1, "stop", 2])]);
    assert!(calls[0]["duration_ms"].is_u64(), "{list:#}");
    let tries = calls[0]["tries"]["failed"].as_array().unwrap();
    let tried = &tries[0];
    assert_eq!(
        (tries.len(), &tried["code"]),
        (1, &json!("llm_unavailable")),
        "{list:#}"
    );
    assert_eq!(
        (&tried["generation"], &calls[0]["generation"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(tried["is_final"], false);
    assert!(
        tried["reason"].as_str().unwrap().contains("503"),
        "{tried:#}"
    );
    assert_eq!(calls[1]["tries"]["failed"], json!([]));

    let refused = stack.get(&format!("{path}/1")).await;
    assert_eq!(refused["code"], "insufficient_scope");
    let developer = bearer(&stack, &["--tenant", "default", "--scope", "read,calls"]).await;
    let call = get(&stack, &developer, &format!("{path}/1")).await;
    assert_eq!(call["answered"]["text"], ANSWER);
    let sent = &call["sent"];
    assert_eq!(
        (&sent["is_exact"], &sent["instructions"]),
        (&json!(true), &json!("Do as scripted."))
    );
    let texts: Vec<_> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["content"])
        .collect();
    assert_eq!(texts, ["6 times 7?", "I count."]);
    let said = &sent["messages"][1];
    assert_eq!(
        said["tool_calls"][0]["tool_input"],
        json!({"expression": "6 * 7"})
    );
    assert_eq!(said["tool_results"][0]["result"]["value"], json!("42"));
    let tools = sent["tools"].as_array().unwrap();
    let calculate = tools
        .iter()
        .find(|tool| tool["name"] == "calculate")
        .unwrap();
    assert_eq!(calculate["definition_hash"].as_str().unwrap().len(), 32);
}

#[tokio::test]
async fn a_call_without_an_answer_has_the_reason_of_its_last_try() {
    let model = Model::start(|_: &Request| Reply::error(401, "invalid_api_key"));
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    stack.ended(&conversation, 1).await;
    let list = stack.get(&calls_of(&stack, &conversation).await).await;
    assert_eq!(list["calls"], json!([]));
    let tries = &list["unanswered"]["tries"]["failed"];
    assert_eq!(
        (&tries[0]["code"], &tries[0]["is_final"]),
        (&json!("llm_unauthorized"), &json!(true)),
        "{list:#}"
    );
}
