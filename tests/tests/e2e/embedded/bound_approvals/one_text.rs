//! The arguments of a call have one text: what a person is shown is what the rule compares, what the tool gets, and what
//! the store and the events have, on both back ends.

use std::sync::{Arc, Mutex};

use axum::{Router, routing::any};
use everturn_tests::{
    events::data,
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::embedded::approvals::{answer, pending, try_answer};

/// An HTTP service that notes the bodies that it gets.
#[derive(Clone)]
struct Bank(Arc<Mutex<Vec<String>>>);

impl Bank {
    /// Starts the service, and returns the table of a tool that pays. An amount of 100 or more needs an approval.
    async fn open() -> (Self, String) {
        let bank = Self(Arc::default());
        let bodies = Arc::clone(&bank.0);
        let note = move |body: String| {
            bodies.lock().unwrap().push(body);
            async { "paid" }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(note))).await });
        let agent = format!(
            r#"
tools = [
    {{ name = "pay", approval = {{ when = {{ properties = {{ amount = {{ minimum = 100 }} }} }} }} }},
    {{ name = "sign", approval = "always" }},
]
[egress]
allow = ["127.0.0.1"]
[tools.pay]
description = "Pays."
method = "POST"
url = "http://127.0.0.1:{port}/pay"
[tools.pay.input.properties]
amount = {{ type = "number" }}
e = {{ type = "number" }}
id = {{ type = "integer" }}
rate = {{ type = "number" }}
to = {{ type = "string" }}
z = {{ type = "number" }}
[client_tools.sign]
description = "Signs at the client."
effect = "once"
"#
        );
        (bank, agent)
    }

    fn paid(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A model that calls a tool once with these arguments, which are sent as written.
async fn calling(tool: &'static str, arguments: &str) -> Model {
    let arguments = arguments.to_owned();
    Model::start(
        move |request: &Request| match request.results_since_user() {
            0 => Reply::text("I pay.").raw_call(tool, &arguments),
            _ => Reply::text("Done."),
        },
    )
    .await
}

/// Returns the text of an answer of the gateway, as it came.
async fn text(stack: &Stack, path: &str) -> String {
    let url = format!("{}/api/v1/agent{path}", stack.url());
    let answer = stack.http.get(url).send().await.unwrap();
    answer.text().await.unwrap()
}

#[tokio::test]
async fn what_is_shown_is_what_runs_to_the_last_digit() {
    let (bank, agent) = Bank::open().await;
    let written = r#"{ "to" : "\u0041da", "amount":12345678901234567890123 ,"id":9007199254740993,"rate":1.50, "e":1e2 }"#;
    let shown = r#"{"amount":12345678901234567890123,"e":1e2,"id":9007199254740993,"rate":1.50,"to":"Ada"}"#;
    let stack = Stack::with_agent(calling("pay", written).await, &agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("pay").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    assert_eq!(call["input_text"], shown);
    let list = text(&stack, &format!("/conversations/{conversation}/approvals")).await;
    assert!(list.contains(&format!(r#""tool_input":{shown}"#)), "{list}");
    let inbox = text(&stack, "/approvals?state=waiting").await;
    assert!(
        inbox.contains(&format!(r#""tool_input":{shown}"#)),
        "{inbox}"
    );
    let yes = json!({"decision": "approve"});
    assert_eq!(answer(&stack, &conversation, &call, yes).await.0, 200);
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(data(&events, "approval_requested")[0]["input_text"], shown);
    let log = text(&stack, &format!("/conversations/{conversation}/events")).await;
    // The act, the request and its answer.
    let same = log.matches(&format!(r#""tool_input":{shown}"#)).count();
    assert_eq!(same, 3, "{log}");
    assert_eq!(bank.paid(), [shown]);
    let told = stack.model.requests()[1].body["messages"].to_string();
    assert!(told.contains("12345678901234567890123"), "{told}");
}

/// An edit with spaces and long numbers runs as the person wrote it, and in the name of the person.
#[tokio::test]
async fn an_edit_runs_to_the_last_digit_and_keeps_its_person() {
    let (bank, agent) = Bank::open().await;
    let stack = Stack::with_agent(calling("pay", r#"{"amount":100}"#).await, &agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("pay").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let id = call["execution_id"].as_str().unwrap();
    let url = format!(
        "{}/api/v1/agent/conversations/{conversation}/approvals/{id}",
        stack.url()
    );
    let body = |input: &str| {
        let hash = &call["input_hash"];
        format!(r#"{{"decision":"approve","input_hash":{hash},"tool_input":{input}}}"#)
    };
    let post = async |input: &str| {
        let request = stack
            .http
            .post(&url)
            .header("content-type", "application/json");
        let answer = request.body(body(input)).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.unwrap())
    };
    let (status, refused) = post(r#"{"amount":5000,"amount":1}"#).await;
    assert_eq!((status, &refused["code"]), (400, &json!("repeated_key")));
    let (status, answered) = post(r#"{ "z": 1.50 , "amount" : 98765432109876543210987 }"#).await;
    assert_eq!(status, 200, "{answered}");
    let events = stack.ended(&conversation, 1).await;
    let runs = r#"{"amount":98765432109876543210987,"z":1.50}"#;
    let resolved = data(&events, "approval_resolved")[0];
    assert_eq!(
        (&resolved["input_text"], &resolved["resolved_through"]),
        (&json!(runs), &Value::Null),
        "the gateway has noted the answer"
    );
    assert_eq!(bank.paid(), [runs]);
}

/// `{"amount":5000,"amount":1}` is 5000 for some readers and 1 for others.
#[tokio::test]
async fn no_tool_gets_a_repeated_key_and_the_model_is_told() {
    for tool in ["pay", "sign"] {
        for arguments in [
            r#"{"amount":5000,"amount":1}"#,
            r#"{"amount":1,"\u0061mount":5000}"#,
            r#"{"orders":[{"amount":1,"amount":5000}]}"#,
        ] {
            let (bank, agent) = Bank::open().await;
            let stack = Stack::with_agent(calling(tool, arguments).await, &agent).await;
            let _running = stack.start().await;
            let (conversation, _) = stack.ask("pay").await;
            let events = stack.ended(&conversation, 1).await;
            let observed = data(&events, "observe")[0];
            assert_eq!(observed["is_error"], true, "{events:#?}");
            let told = observed["result"].to_string();
            assert!(told.contains("`amount` more than once"), "{told}");
            for asked in ["approval_requested", "client_tool_requested"] {
                assert_eq!(data(&events, asked).len(), 0, "{tool} {arguments}");
            }
            assert_eq!(bank.paid(), [""; 0]);
            assert!(
                stack.model.requests()[1]
                    .body
                    .to_string()
                    .contains("more than once")
            );
        }
    }
}

/// A number that a rule cannot compare exactly asks a person, on whichever side of the limit it is.
#[tokio::test]
async fn no_number_slips_past_a_rule() {
    for arguments in [
        r#"{"amount":99.99999999999999999999}"#,
        r#"{"amount":12345678901234567890123}"#,
        r#"{"amount":100}"#,
    ] {
        let (bank, agent) = Bank::open().await;
        let stack = Stack::with_agent(calling("pay", arguments).await, &agent).await;
        let _running = stack.start().await;
        let (conversation, _) = stack.ask("pay").await;
        let call = pending(&stack, &conversation, 1).await.remove(0);
        assert_eq!(call["input_text"], arguments);
        let no = json!({"decision": "deny"});
        assert_eq!(
            answer(&stack, &conversation, &call, no.clone()).await.0,
            200
        );
        stack.ended(&conversation, 1).await;
        assert_eq!(try_answer(&stack, &conversation, &call, no).await.0, 409);
        assert_eq!(bank.paid(), [""; 0]);
    }
}
