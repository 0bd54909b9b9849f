//! A provider's key is nowhere but in the requests to it: not in the database, in histories, logs, streams, answers of the
//! gateway or metrics, whatever the provider makes of it.

use std::{collections::HashMap, fs, sync::Mutex};

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

use crate::health::Probes;

/// The key of the provider. It looks like no other text.
const CANARY: &str = "sk-canary-7f3a9c51e2d84b60";
/// What the model says, which must be where the key must not be.
const ANSWER: &str = "The parrot is well.";

/// What the user writes: the name of a case.
const CASES: [&str; 8] = [
    "tools",
    "refused",
    "bad",
    "away",
    "limited",
    "broken",
    "malformed",
    "nonsense",
];

/// The failures of a case before the model answers, unless the first one ends the turn.
const FAILURES: usize = 2;

/// Repeats the key in every way in which a provider can, and then answers.
fn repeats_the_key(request: &Request, tries: usize) -> Reply {
    assert_eq!(request.key, CANARY);
    let words = format!("the key {CANARY} is not welcome");
    let good = Reply::text(ANSWER);
    let error = json!({"error": {"message": words, "type": words, "code": null}}).to_string();
    match request.last("user").as_str() {
        _ if tries > FAILURES => good,
        "tools" if request.results_since_user() == 0 => {
            good.call("calculate", &json!({"expression": "21 * 2"}))
        }
        "refused" => Reply::error(401, &words),
        "bad" => Reply::error(400, &words),
        "away" => Reply::error(503, &words).header("retry-after-ms", "10"),
        "limited" => Reply::error(429, &words).header("retry-after-ms", "10"),
        "broken" => good.event(&error),
        "malformed" => good.event(&format!("{{\"choices\": {words}")),
        "nonsense" => good.event(&json!({"choices": words}).to_string()),
        _ => good,
    }
}

/// The texts that hold the key: itself, and its bytes as histories and databases write them.
fn forms() -> Vec<String> {
    let bytes = CANARY.bytes().map(|byte| format!("{byte:02x}"));
    let hex = bytes.collect::<Vec<_>>().concat();
    // Base64 of a longer text depends on where in it the key begins.
    let shifted = (0..3).map(|start| {
        let whole = (CANARY.len() - start) / 3 * 3;
        STANDARD.encode(&CANARY[start..start + whole])
    });
    [CANARY.to_owned(), hex]
        .into_iter()
        .chain(shifted)
        .collect()
}

/// The text of a history, and what its payloads hold.
fn decoded(value: &Value, text: &mut String) {
    match value {
        Value::String(word) => {
            let payload = STANDARD.decode(word).unwrap_or_default();
            text.push_str(word);
            text.push_str(&String::from_utf8_lossy(&payload));
        }
        Value::Array(values) => values.iter().for_each(|value| decoded(value, text)),
        Value::Object(fields) => fields.values().for_each(|value| decoded(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Everything that is seen of a conversation: pages of the gateway, its stream and its history.
async fn seen(stack: &Stack, conversation: &str) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    for page in [
        "",
        "/events",
        "/messages",
        "/execution-status",
        "/executions",
    ] {
        let path = format!("/conversations/{conversation}{page}");
        seen.push((path.clone(), stack.get(&path).await.to_string()));
    }
    let is_end = |frame: &everturn_client::Frame| {
        let text = format!("{frame:?}");
        text.contains("complete") || text.contains("\"error\"")
    };
    let frames = stack.frames_until(conversation, 0, is_end).await;
    seen.push(("the stream".to_owned(), format!("{frames:?}")));
    let workflow = ids::workflow_id(conversation);
    let mut history = String::new();
    decoded(&stack.temporal.history(&workflow).await, &mut history);
    assert!(history.contains(conversation), "payloads are read");
    seen.push(("the history".to_owned(), history));
    let describe = ["workflow", "describe", "--workflow-id", &workflow];
    let described = stack.temporal.json(&describe).await.to_string();
    seen.push(("its state".to_owned(), described));
    seen
}

#[tokio::test]
async fn a_key_stays_where_it_is() {
    let tries: Mutex<HashMap<String, usize>> = Mutex::default();
    let model = Model::start(move |request: &Request| {
        let mut tries = tries.lock().unwrap();
        let tries = tries.entry(request.last("user")).or_default();
        *tries += 1;
        repeats_the_key(request, *tries)
    });
    let stack = Stack::new(model.await).await.with_gateways(1);
    let environment = [("SCRIPTED_KEY", CANARY), ("EVERTURN_LOG", "debug")];
    let (of_gateway, of_worker) = (Probes::free(), Probes::free());
    let listen = format!("127.0.0.1:{}", stack.gateway_port(0));
    let gateway = ["gateway", "--listen", &listen];
    let _gateway = of_gateway.spawn(&stack, &gateway, &environment);
    let _worker = of_worker.spawn(&stack, &["worker"], &environment);
    for probes in [&of_gateway, &of_worker] {
        probes.says("/readyz", 200).await;
    }
    let mut places = Vec::new();
    for case in CASES {
        let (conversation, _) = stack.ask(case).await;
        let events = stack.ended(&conversation, 1).await;
        places.extend(seen(&stack, &conversation).await);
        let text = json!(events).to_string();
        places.push((format!("the events of {case}"), text));
    }
    places.push(("the database".to_owned(), stack.dump().await));
    for log in ["worker", "gateway"] {
        let text = fs::read_to_string(stack.path(&format!("{log}.log"))).unwrap();
        assert!(text.len() > 1000, "it has been logged");
        places.push((format!("the log of the {log}"), text));
    }
    for probes in [&of_gateway, &of_worker] {
        places.push(("metrics".to_owned(), probes.text().await.unwrap()));
    }
    for (place, text) in &places {
        for form in forms() {
            let found = text.find(&form);
            let around = found.map(|at| text[..at].chars().rev().take(300).collect::<String>());
            let around = around.map(|text| text.chars().rev().collect::<String>());
            assert_eq!(around, None, "the key is in {place}");
        }
    }
    let with_answer = places.iter().filter(|(_, text)| text.contains(ANSWER));
    assert!(
        with_answer.count() >= 4,
        "the places are those of the turns"
    );
}
