//! The reason of a cancelled turn says who has cancelled it.

use everturn_tests::{
    events::data,
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

use crate::embedded::keys::{AUTH, create};

async fn ask(stack: &Stack, method: &str, key: &str, path: &str, body: Value) -> Value {
    let url = format!("{}/api/v1/agent/conversations/{path}", stack.url());
    let request = stack.http.request(method.parse().unwrap(), url);
    let answer = request.bearer_auth(key).json(&body).send().await.unwrap();
    answer.json().await.unwrap_or_default()
}

#[tokio::test]
async fn a_cancel_names_the_person_or_the_engine() {
    let model = Model::start(|_: &Request| Reply::text("As far as this").held());
    let stack = Stack::new(model.await).await;
    stack.configure(AUTH);
    let ann = create(&stack, &["--tenant", "acme", "--owner", "ann"]).await;
    let _running = stack.start().await;
    for (times, (name, reason)) in [
        ("by-person", "cancelled by ann"),
        ("by-signal", "cancelled by an operator through the engine"),
        ("by-workflow", "cancelled by an operator through the engine"),
    ]
    .into_iter()
    .enumerate()
    {
        let message = json!({"content": "go", "create": {}});
        ask(&stack, "POST", &ann, &format!("{name}/messages"), message).await;
        stack.asked(times + 1).await;
        let id = format!("conversation-acme~{name}");
        match name {
            "by-person" => drop(ask(&stack, "POST", &ann, "by-person/cancel", json!({})).await),
            "by-signal" => {
                let signal = ["workflow", "signal", "--workflow-id", &id];
                let cancel = ["--name", "cancel", "--input", "{}"];
                stack.temporal.succeed(&[signal, cancel].concat()).await;
            }
            _ => {
                let cancel = ["workflow", "cancel", "--workflow-id", &id];
                stack.temporal.succeed(&cancel).await;
            }
        }
        let path = format!("{name}/events");
        let cancelled = wait::until(&format!("{name}: the turn is cancelled"), || async {
            let page = ask(&stack, "GET", &ann, &path, json!({})).await;
            let events = page["events"].as_array().cloned()?;
            data(&events, "cancelled").first().map(|it| (*it).clone())
        })
        .await;
        assert_eq!(cancelled["reason"], reason, "{name}");
    }
}
