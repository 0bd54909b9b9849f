//! A server with a program that tries to reach the engine, and to approve the payment of another tenant there.

use everturn_proto::ids;
use everturn_tests::{
    events::{data, result},
    temporal, wait,
};
use serde_json::{Map, json};

use super::*;
use crate::embedded::keys::{AUTH, create};

const CONVERSATION: &str = "payment";

/// The model of both tenants: it pays, or makes the attack whose arguments are in the message.
async fn model() -> Model {
    Model::start(|request: &Request| {
        let content = request.last("user");
        match (request.results_since_user(), content.as_str()) {
            (0, "pay") => Reply::text("May I?").call("test_once", &json!({"effect": true})),
            (0, arguments) => {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                Reply::text("").call("attack__approve", &json!({"arguments": arguments}))
            }
            _ => Reply::text("Done."),
        }
    })
    .await
}

/// A stack with the server under these rules, and with these further tables.
async fn stack(place: &Place, rules: fn(u16) -> String, tables: &str) -> Stack {
    let tools = "tools = [\"attack__*\", { name = \"test_once\", approval = \"always\" }]\n";
    let stack = Stack::with_agent(model().await, tools).await;
    let server = server(place, &rules(stack.temporal.port()));
    stack.configure(&format!("{AUTH}\n{tables}{server}"));
    stack
}

async fn ask(stack: &Stack, method: &str, key: &str, path: &str, body: Value) -> Value {
    let url = format!("{}/api/v1/agent{path}", stack.url());
    let request = stack.http.request(method.parse().unwrap(), url);
    let answer = request.bearer_auth(key).json(&body).send().await.unwrap();
    answer.json().await.unwrap_or_default()
}

/// The name of the conversation with the payment. Tests share the engine, so each test has a name of its own.
fn conversation(stack: &Stack) -> String {
    let folder = stack.directory().file_name().unwrap().to_string_lossy();
    format!("{CONVERSATION}-{folder}")
}

/// Has a tenant ask for a payment that waits for a person, and returns the tenant's key and the waiting call.
async fn waiting_payment(stack: &Stack) -> (String, Value) {
    let key = create(stack, &["--tenant", "acme"]).await;
    let path = format!("/conversations/{}/messages", conversation(stack));
    let message = json!({"content": "pay", "create": {}});
    ask(stack, "POST", &key, &path, message).await;
    (key.clone(), pending(stack, &key).await)
}

/// Waits until the payment waits for a person.
async fn pending(stack: &Stack, key: &str) -> Value {
    let path = format!("/conversations/{}/approvals", conversation(stack));
    let waiting = wait::until("the payment waits for a person", || async {
        let list = ask(stack, "GET", key, &path, json!({})).await;
        list["approvals"][0].as_object().cloned()
    });
    let call: Map<_, _> = waiting.await;
    call.into()
}

/// Has another tenant's turn make the attack on the payment, and returns the outcome of the attack.
async fn attack(stack: &Stack, payment: &Value) -> Value {
    let key = create(stack, &["--tenant", "evil"]).await;
    let answer = json!({"execution_id": payment["execution_id"], "decision": "approve",
        "input_hash": payment["input_hash"]});
    let arguments = json!([
        temporal::binary().display().to_string(),
        stack.temporal.address(),
        ids::workflow_id(&format!("acme~{}", conversation(stack))),
        answer.to_string(),
    ]);
    let message = json!({"content": arguments.to_string(), "create": {}});
    ask(
        stack,
        "POST",
        &key,
        &format!("/conversations/attack-{}/messages", conversation(stack)),
        message,
    )
    .await;
    let events = wait::until("the attack has been made", || async {
        let page = ask(
            stack,
            "GET",
            &key,
            &format!("/conversations/attack-{}/events", conversation(stack)),
            json!({}),
        )
        .await;
        let events = page["events"].as_array().cloned()?;
        (!data(&events, "complete").is_empty()).then_some(events)
    });
    found(result(&events.await, "attack__approve"))
}

/// The rules of a server without rules of files and ports.
fn unconfined(_: u16) -> String {
    "process.unconfined = true\n".to_owned()
}

/// The rules of a server whose operator opens the port of the engine by name.
fn opened(engine: u16) -> String {
    format!("process = {{ read = [\"/\"], write = [\"/\"], connect_ports = [{engine}] }}\n")
}

const SWITCHED_ON: &str = "[approvals]\nallow_signal = true\n";

#[tokio::test]
async fn a_server_cannot_approve_the_payment_of_another_tenant() {
    let place = Place::new();
    // Answers through the engine are switched on, so only the closed port stops the program.
    let stack = stack(&place, unconfined, SWITCHED_ON).await;
    let _running = stack.start_with_one_worker().await;
    let (key, payment) = waiting_payment(&stack).await;
    let outcome = attack(&stack, &payment).await;
    assert_eq!(outcome["succeeded"], false, "{outcome}");
    assert_eq!(pending(&stack, &key).await, payment);
    assert_eq!(stack.effects().len(), 0);
}

#[tokio::test]
async fn a_server_with_the_port_by_name_is_refused_by_the_turn() {
    let place = Place::new();
    let stack = stack(&place, opened, "").await;
    let _running = stack.start_with_one_worker().await;
    let (key, payment) = waiting_payment(&stack).await;
    let outcome = attack(&stack, &payment).await;
    assert_eq!(
        outcome["succeeded"], true,
        "the engine took the signal: {outcome}"
    );
    let id = ids::workflow_id(&format!("acme~{}", conversation(&stack)));
    wait::until("the turn shows the refusal", || async {
        let query = [
            "workflow",
            "query",
            "--workflow-id",
            &id,
            "--type",
            "status",
        ];
        let status = stack.temporal.json(&query).await.to_string();
        status
            .contains("approval_not_through_gateway")
            .then_some(())
    })
    .await;
    assert_eq!(pending(&stack, &key).await, payment);
    assert_eq!(stack.effects().len(), 0);
}

#[tokio::test]
async fn the_attack_works_where_the_operator_allows_both() {
    let place = Place::new();
    let stack = stack(&place, opened, SWITCHED_ON).await;
    let _running = stack.start_with_one_worker().await;
    let (_, payment) = waiting_payment(&stack).await;
    let outcome = attack(&stack, &payment).await;
    assert_eq!(outcome["succeeded"], true, "{outcome}");
    stack.had_effects(1).await;
}

#[tokio::test]
async fn a_program_of_a_tool_reaches_every_port_but_those_of_the_own_servers() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap().port();
    // The message names the port.
    let program = place.program();
    let model = Model::start(move |request: &Request| {
        let attack = ("connect", vec![request.last("user").clone()]);
        match request.results_since_user() {
            0 => {
                let (tool, input) = of_tool(&program, &attack);
                Reply::text("").call(&tool, &input)
            }
            _ => Reply::text("Done."),
        }
    });
    let stack = Stack::with_agent(model.await, "tools = [\"test_program\"]\n").await;
    let _running = stack.start_with_one_worker().await;
    let mut outcomes = Vec::new();
    for port in [stack.temporal.port(), open] {
        let (conversation, _) = stack.ask(&port.to_string()).await;
        let events = stack.ended(&conversation, 1).await;
        outcomes.push(found(result(&events, "test_program")));
    }
    let succeeded: Vec<_> = outcomes
        .iter()
        .map(|outcome| &outcome["succeeded"])
        .collect();
    assert_eq!(succeeded, [&json!(false), &json!(true)], "{outcomes:?}");
}
