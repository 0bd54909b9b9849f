//! What is another tenant's does not exist: every operation of the OpenAPI document is tried on it, so that a new one
//! cannot be forgotten.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Map, Value, json};
use support::{
    Answer, TestGateway,
    document::{Operation, document, operations},
};

/// How an operation treats a conversation that the caller must not see.
enum Rule {
    /// Its id is in the path: 404.
    InPath,
    /// Its id is this field of the body: the status and code.
    InBody(&'static str, u16, &'static str),
    /// It is not among the rows of this field.
    NotListed(&'static str),
    /// It knows no conversations.
    Open,
}

fn rule(operation: &Operation<'_>) -> Rule {
    let parameters: Vec<_> = operation.path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
    match (operation.name.as_str(), parameters.as_slice()) {
        (_, ["id"]) => Rule::InPath,
        ("POST /api/v1/agent/conversations", _) => Rule::InBody("id", 409, "conversation_id_taken"),
        ("POST /api/v1/agent/chat", _) => Rule::InBody("conversation_id", 404, "conversation_not_found"),
        ("GET /api/v1/agent/conversations", _) => Rule::NotListed("conversations"),
        ("GET /livez" | "GET /readyz" | "GET /api/v1/openapi.json" | "GET /docs/errors/{code}", _) => Rule::Open,
        _ => panic!("{} is new: what does it do with what is another tenant's?", operation.name),
    }
}

/// A body with the fields that the operation requires, from the examples of their schemas.
fn body(document: &Value, operation: &Operation<'_>) -> Option<Map<String, Value>> {
    let content = operation.described.pointer("/requestBody/content/application~1json/schema")?;
    let schema = resolved(document, content.pointer("/oneOf/0").unwrap_or(content));
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let field = |name: &Value| {
        let name = name.as_str().unwrap();
        let example = resolved(document, &schema["properties"][name])["examples"][0].clone();
        assert!(!example.is_null(), "{}: `{name}` needs an example", operation.name);
        (name.to_owned(), example)
    };
    Some(required.iter().map(field).collect())
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    reference.map_or(schema, |reference| document.pointer(reference).unwrap())
}

async fn send(gateway: &TestGateway, operation: &Operation<'_>, id: &str, body: Option<&Value>) -> reqwest::Response {
    let request = gateway.request(&operation.method, &operation.path.replace("{id}", id));
    body.into_iter().fold(request, reqwest::RequestBuilder::json).send().await.unwrap()
}

#[tokio::test]
async fn what_is_another_tenants_does_not_exist() {
    let gateway = TestGateway::start().await;
    gateway.store.add("theirs", "other tenant");
    gateway.store.append("theirs", "m", "user_message", r#"{"content":"secret"}"#);
    let before = gateway.store.snapshot();
    let document = document();
    for operation in operations(&document) {
        let mut body = body(&document, &operation);
        let rule = rule(&operation);
        if let (Rule::InBody(field, ..), Some(body)) = (&rule, &mut body) {
            body.insert((*field).to_owned(), json!("theirs"));
        }
        let body = body.map(Value::from);
        let ask = async |id| Answer::of(send(&gateway, &operation, id, body.as_ref()).await).await;
        match rule {
            Rule::InPath => ask("theirs").await.assert_problem(404, "conversation_not_found"),
            Rule::InBody(_, status, code) => ask("").await.assert_problem(status, code),
            Rule::NotListed(field) => assert_eq!(ask("").await.json()[field], json!([]), "{}", operation.name),
            Rule::Open => {}
        }
        assert_eq!(gateway.store.snapshot(), before, "{} changed something", operation.name);
        assert_eq!(gateway.turns.take(), [""; 0], "{} reached the engine", operation.name);
    }
}

/// The same requests on the caller's own conversation: what is refused above is refused for whose it is.
#[tokio::test]
async fn what_is_ones_own_can_be_reached() {
    let document = document();
    for operation in operations(&document).iter().filter(|operation| matches!(rule(operation), Rule::InPath)) {
        let gateway = TestGateway::start().await;
        gateway.store.add("mine", "default");
        let body = body(&document, operation).map(Value::from);
        let answer = send(&gateway, operation, "mine", body.as_ref()).await;
        assert!(answer.status().is_success(), "{}: {}", operation.name, answer.status());
    }
}
