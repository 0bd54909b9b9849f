//! What people, models and tools say is nowhere in clear when `[codec]` is set: not in the database of the engine, not in
//! Redis after the turn, not in logs and metrics. Whoever may read it does so through the codec server.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

use everturn_proto::ids;
use everturn_tests::{
    engine_dump::{self, forms},
    events::types,
    model::{Model, Reply, Request},
    python::PythonTools,
    stack::Stack,
};
use serde_json::{Value, json};

use crate::embedded::{
    approvals::{answer, pending},
    codec::{KEYS, TABLE, key},
    health::Probes,
    keys::create,
};

/// Texts that look like no other one. The numbers are arguments, and stand in results. Tests share the engine's database, so
/// each has its own.
#[derive(Clone)]
struct Canaries {
    message: String,
    answer: String,
    provider: String,
    reason: String,
    amount: u64,
    edited: u64,
}

impl Canaries {
    /// Makes those of a test. `number` is below 10, and no other test has it.
    fn of(number: u64) -> Self {
        Self {
            message: format!("canary{number}message7f3a"),
            answer: format!("canary{number}answer99ab"),
            provider: format!("canary{number}provider84b6"),
            reason: format!("canary{number}reason51e2"),
            amount: 918_273_640 + number,
            edited: 564_738_290 + number,
        }
    }

    /// What goes through the engine by value.
    fn through_the_engine(&self) -> [String; 3] {
        [
            self.amount.to_string(),
            self.edited.to_string(),
            self.reason.clone(),
        ]
    }

    /// What is in the events of the turn.
    fn in_events(&self) -> Vec<String> {
        let mut texts = vec![self.message.clone(), self.answer.clone()];
        texts.extend(self.through_the_engine());
        texts
    }

    fn all(&self) -> Vec<String> {
        let mut texts = self.in_events();
        texts.push(self.provider.clone());
        texts
    }

    fn are_nowhere(&self, places: &[(&str, String)]) {
        for (place, text) in places {
            for form in self.all().iter().flat_map(|canary| forms(canary)) {
                let at = text.find(&form);
                let around = at.map(|at| text[..at].chars().rev().take(300).collect::<String>());
                let around = around.map(|text| text.chars().rev().collect::<String>());
                assert_eq!(around, None, "{form} is in {place}");
            }
        }
    }

    /// True when a text has all that goes through the engine.
    fn are_in(&self, text: &str) -> bool {
        let mut canaries = self.through_the_engine().into_iter();
        canaries.all(|canary| text.contains(&canary))
    }
}

/// Fails once with a text of the provider's, calls two tools of the worker in Python, and answers.
async fn model(canaries: &Canaries) -> Model {
    let calls = AtomicUsize::new(0);
    let amount = |amount: u64| json!({"amount": amount});
    let canaries = canaries.clone();
    Model::start(move |request: &Request| {
        if calls.fetch_add(1, Ordering::Relaxed) == 0 {
            return Reply::error(503, &canaries.provider).header("retry-after-ms", "10");
        }
        match request.results_since_user() {
            0 => Reply::text("Calling.")
                .call("transfer", &amount(canaries.amount))
                .call("asks", &amount(1)),
            _ => Reply::text(&canaries.answer),
        }
    })
    .await
}

/// A stack with one gateway.
async fn world(canaries: &Canaries) -> PythonTools {
    let mut tools = PythonTools::new(model(canaries).await).await;
    tools.stack = tools.stack.with_gateways(1);
    tools
}

/// Sends the message, answers the approval with another input, and starts a worker for both calls.
async fn turn(tools: &PythonTools, canaries: &Canaries, environment: &[(&str, &str)]) -> String {
    let stack = &tools.stack;
    let (conversation, _) = stack.ask(&canaries.message).await;
    let call = pending(stack, &conversation, 1).await.remove(0);
    let edit = json!({"decision": "approve", "tool_input": {"amount": canaries.edited}, "reason": canaries.reason});
    let (status, body) = answer(stack, &conversation, &call, edit).await;
    assert_eq!(status, 200, "{body}");
    let _python = tools.worker_for_with(2, environment).await;
    let events = stack.ended(&conversation, 1).await;
    assert!(
        types(&events).ends_with("assistant_message complete"),
        "{events:#?}"
    );
    let said = json!(events).to_string();
    for canary in canaries.in_events() {
        assert!(said.contains(&canary), "{canary} is a part of the turn");
    }
    conversation
}

/// Shows a history with the CLI, through the codec server and with this key.
async fn shown(stack: &Stack, conversation: &str, secret: Option<&str>) -> String {
    let endpoint = format!("{}/api/v1/codec", stack.url());
    let auth = format!("Bearer {}", secret.unwrap_or_default());
    let workflow = ids::workflow_id(conversation);
    let mut show = vec!["workflow", "show", "--workflow-id", &workflow];
    show.extend(["--codec-endpoint", &endpoint, "--codec-auth", &auth]);
    let history: Value = stack.temporal.json(&show).await;
    let mut text = String::new();
    decoded(&history, &mut text);
    text
}

/// The text of a history, and what its payloads hold.
fn decoded(value: &Value, text: &mut String) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    match value {
        Value::String(word) => {
            text.push_str(word);
            let payload = STANDARD.decode(word).unwrap_or_default();
            text.push_str(&String::from_utf8_lossy(&payload));
        }
        Value::Array(values) => values.iter().for_each(|value| decoded(value, text)),
        Value::Object(fields) => fields.values().for_each(|value| decoded(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[tokio::test]
async fn nothing_of_a_turn_is_in_clear() {
    let canaries = Canaries::of(0);
    let tools = world(&canaries).await;
    let (stack, ring) = (&tools.stack, key("2026-11"));
    stack.configure(&format!("{TABLE}operator_tenants = [\"ops\"]\n"));
    let environment = [(KEYS, ring.as_str())];
    let (of_gateway, of_worker) = (Probes::free(), Probes::free());
    let listen = format!("127.0.0.1:{}", stack.gateway_port(0));
    let _gateway = of_gateway.spawn(stack, &["gateway", "--listen", &listen], &environment);
    let _worker = of_worker.spawn(stack, &["worker"], &environment);
    for probes in [&of_gateway, &of_worker] {
        probes.says("/readyz", 200).await;
    }
    let conversation = turn(&tools, &canaries, &environment).await;

    let engine = engine_dump::dump().await;
    let is_found = forms(&conversation)
        .iter()
        .any(|form| engine.contains(form));
    assert!(
        is_found,
        "the dump is that of the turn, and ids are in clear"
    );
    let logs = ["worker.log", "gateway.log", "python.log"]
        .map(|log| fs::read_to_string(stack.path(log)).unwrap());
    let metrics = [
        of_gateway.text().await.unwrap(),
        of_worker.text().await.unwrap(),
    ];
    canaries.are_nowhere(&[
        ("the engine", engine),
        ("Redis", engine_dump::of_redis(stack).await),
        ("the logs", logs.concat()),
        ("metrics", metrics.concat()),
    ]);

    let scope = |tenant: &'static str, scope: &'static str| ["--tenant", tenant, "--scope", scope];
    let operator = create(stack, &scope("ops", "codec")).await;
    let tenant = create(stack, &scope("default", "codec")).await;
    let other = create(stack, &scope("other", "codec")).await;
    let reader = create(stack, &scope("default", "read,write,approve")).await;
    assert!(canaries.are_in(&shown(stack, &conversation, Some(&operator)).await));
    let of_tenant = shown(stack, &conversation, Some(&tenant)).await;
    assert!(
        canaries.are_in(&of_tenant),
        "a tenant reads its own payloads"
    );
    let of_other = shown(stack, &conversation, Some(&other)).await;
    canaries.are_nowhere(&[("what another tenant reads", of_other)]);
    for (secret, status) in [(reader.as_str(), 403), ("evk_wrong", 401)] {
        let url = format!("{}/api/v1/codec/decode", stack.url());
        let request = stack.http.post(url).bearer_auth(secret);
        let answer = request.json(&json!({"payloads": []})).send().await.unwrap();
        assert_eq!(answer.status(), status);
    }
}

/// The search finds what is there: without a codec, what goes by value is in the engine's database.
#[tokio::test]
async fn without_a_codec_the_same_canaries_are_found() {
    let canaries = Canaries::of(1);
    let tools = world(&canaries).await;
    let stack = &tools.stack;
    let _running = stack.start().await;
    turn(&tools, &canaries, &[]).await;
    let engine = engine_dump::dump().await;
    for canary in canaries.through_the_engine() {
        let is_found = forms(&canary).iter().any(|form| engine.contains(form));
        assert!(is_found, "{canary} is in the engine's database");
    }
}
