//! A conversation of somebody else does not exist for a caller, and nobody gets in without a valid credential. Every
//! operation of the OpenAPI document is tried, so that a new endpoint cannot be forgotten.

use everturn_gateway::openapi_document;
use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use reqwest::{Response, header};
use serde_json::{Map, Value, json};

use crate::embedded::keys::{AUTH, create, succeed};

/// The conversation that strangers must not see.
const THEIRS: &str = "theirs";

/// How an operation treats a conversation that the caller must not see: one of another owner of the tenant.
pub(crate) enum Rule {
    /// The id of the conversation is in the path. The answer is 404.
    InPath,
    /// The id of the conversation is this field of the body. The answer has this status and code.
    InBody(&'static str, u16, &'static str),
    /// The id of a file is in the path. The answer is 404.
    OfFile,
    /// The operation answers with a list, in this field, and the conversation is not in it.
    NotListed(&'static str),
    /// The operation answers with a stream that begins with a list, and the conversation is not in it.
    NotStreamed,
    /// The operation needs a scope of its own, which neither owners nor strangers have.
    OfOperator,
    /// The operation is about the caller, and not about conversations.
    OfCaller,
    /// The operation needs no credential, is not about conversations, and answers with this status.
    Open(u16),
}

/// One operation of the OpenAPI document.
pub(crate) struct Operation {
    /// Method and path, like `GET /path/{id}`.
    pub(crate) name: String,
    pub(crate) method: String,
    path: String,
    pub(crate) rule: Rule,
    /// A body with the required fields, from the examples of their schemas; `None` if the operation takes no body.
    body: Option<Map<String, Value>>,
}

/// Returns every operation of the OpenAPI document.
pub(crate) fn operations() -> Vec<Operation> {
    let document: Value = serde_json::from_str(&openapi_document()).unwrap();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, described) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            let name = format!("{method} {path}");
            let (rule, body) = (rule(&name), body(&document, &name, described));
            found.push(Operation {
                name,
                method,
                path: path.clone(),
                rule,
                body,
            });
        }
    }
    found
}

fn rule(name: &str) -> Rule {
    match name {
        "POST /api/v1/agent/conversations" => Rule::InBody("id", 409, "conversation_id_taken"),
        "POST /api/v1/agent/chat" => Rule::InBody("conversation_id", 404, "conversation_not_found"),
        "GET /api/v1/agent/conversations" => Rule::NotListed("conversations"),
        "GET /api/v1/agent/conversation-list/stream" => Rule::NotStreamed,
        "GET /api/v1/agent/approvals" => Rule::NotListed("approvals"),
        "GET /api/v1/usage" => Rule::NotListed("usage"),
        "GET /api/v1/agent/blobs/{id}" => Rule::OfFile,
        // The file is the caller's own, and belongs to no conversation. It has no type here.
        "POST /api/v1/agent/blobs" => Rule::InBody("", 415, "blob_type_refused"),
        "POST /api/v1/codec/decode" | "POST /api/v1/codec/encode" => Rule::OfOperator,
        name if name.contains("/api/v1/admin/") => Rule::OfOperator,
        "GET /api/v1/agent/agents"
        | "GET /api/v1/tool-servers"
        | "GET /api/v1/auth/session"
        | "POST /api/v1/auth/session"
        | "DELETE /api/v1/auth/session" => Rule::OfCaller,
        "GET /"
        | "GET /about"
        | "GET /page/{name}"
        | "GET /livez"
        | "GET /readyz"
        | "GET /api/v1/openapi.json"
        | "GET /docs/errors/{code}" => Rule::Open(200),
        name if name.contains("/tool-servers/") => Rule::InBody("", 404, "tool_server_not_found"),
        name if name.contains("/oauth/callback") => Rule::Open(400),
        name if name.contains("/conversations/{id}") => Rule::InPath,
        _ => panic!("{name} is new: what does it do with what is somebody else's?"),
    }
}

fn body(document: &Value, name: &str, described: &Value) -> Option<Map<String, Value>> {
    let content = described.pointer("/requestBody/content/application~1json/schema")?;
    let schema = resolved(document, content.pointer("/oneOf/0").unwrap_or(content));
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let field = |field: &Value| {
        let field = field.as_str().unwrap();
        let shape = resolved(document, &schema["properties"][field]);
        let example = shape
            .get("example")
            .or_else(|| shape.pointer("/examples/0"));
        // If the schema of a field has no type, the field takes any JSON.
        let any = json!({"sum": 4});
        let of_any = shape.get("type").is_none().then_some(&any);
        let example = example.or_else(|| shape.pointer("/enum/0")).or(of_any);
        let example = example.unwrap_or_else(|| panic!("{name}: `{field}` needs an example"));
        (field.to_owned(), example.clone())
    };
    Some(required.iter().map(field).collect())
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix('#'));
    reference.map_or(schema, |reference| document.pointer(reference).unwrap())
}

impl Operation {
    /// Sends the request for a conversation, whose id goes where the operation takes it.
    pub(crate) async fn ask(
        &self,
        stack: &Stack,
        authorization: Option<&str>,
        id: &str,
    ) -> Response {
        let mut body = self.body.clone();
        if let (Rule::InBody(field, ..), Some(body)) = (&self.rule, &mut body) {
            body.insert((*field).to_owned(), json!(id));
        }
        let url = stack.url()
            + &self
                .path
                .replace("{id}", id)
                .replace("{code}", "unauthenticated")
                .replace("{key_id}", id)
                .replace("{name}", "app.js");
        let url = url.replace("{execution_id}", "exec_0123456789ab");
        let url = url.replace("{step}", "0");
        let request = stack.http.request(self.method.parse().unwrap(), url);
        let request = body.iter().fold(request, reqwest::RequestBuilder::json);
        let request = authorization.into_iter().fold(request, |request, value| {
            request.header("authorization", value)
        });
        request.send().await.unwrap()
    }

    /// Sends the request like [`Operation::ask`], and asserts that the answer is this problem.
    async fn is_refused(
        &self,
        stack: &Stack,
        authorization: Option<&str>,
        status: u16,
        code: &str,
    ) {
        let answer = self.ask(stack, authorization, THEIRS).await;
        let is_challenged = answer.headers().contains_key(header::WWW_AUTHENTICATE);
        let answered = (
            answer.status().as_u16(),
            answer.json::<Value>().await.unwrap()["code"].clone(),
        );
        assert_eq!(
            answered,
            (status, json!(code)),
            "{} with {authorization:?}",
            self.name
        );
        assert_eq!(
            is_challenged,
            matches!(status, 401 | 403),
            "{} with {authorization:?}",
            self.name
        );
    }

    /// Asserts that a stranger learns nothing of somebody else's conversation by this operation.
    async fn shows_nothing_to(&self, stack: &Stack, stranger: &str) {
        match self.rule {
            Rule::InPath => {
                self.is_refused(stack, Some(stranger), 404, "conversation_not_found")
                    .await;
            }
            Rule::InBody(_, status, code) => {
                self.is_refused(stack, Some(stranger), status, code).await;
            }
            Rule::OfFile => {
                self.is_refused(stack, Some(stranger), 404, "blob_not_found")
                    .await;
            }
            Rule::OfOperator => {
                self.is_refused(stack, Some(stranger), 403, "insufficient_scope")
                    .await;
            }
            Rule::NotListed(field) => {
                let answer = self.ask(stack, Some(stranger), THEIRS).await;
                let listed: Value = answer.json().await.unwrap();
                assert_eq!(listed[field], json!([]), "{}", self.name);
            }
            Rule::NotStreamed => {
                let mut answer = self.ask(stack, Some(stranger), THEIRS).await;
                let mut text = String::new();
                while !text.contains("event: list") || !text.ends_with("\n\n") {
                    let chunk = answer.chunk().await.unwrap().expect("a stream goes on");
                    text.push_str(std::str::from_utf8(&chunk).unwrap());
                }
                assert!(
                    text.contains(r#""conversations":[]"#),
                    "{}: {text}",
                    self.name
                );
            }
            Rule::OfCaller | Rule::Open(_) => {
                let answer = self.ask(stack, Some(stranger), THEIRS).await;
                let status = answer.status();
                // A browser without a state gets a page with an error.
                let is_shown = status.is_success() || matches!(self.rule, Rule::Open(400));
                assert!(is_shown, "{}: {status}", self.name);
            }
        }
    }
}

/// Returns everything that the owner of the conversation can read of it.
async fn seen(stack: &Stack, owner: &str) -> Vec<Value> {
    let conversation = format!("/conversations/{THEIRS}");
    let mut all = Vec::new();
    for path in
        ["", "/events", "/messages", "/execution-status"].map(|path| conversation.clone() + path)
    {
        all.push(get(stack, owner, &path).await);
    }
    all.push(get(stack, owner, "/conversations").await);
    all
}

pub(crate) async fn get(stack: &Stack, key: &str, path: &str) -> Value {
    let request = stack
        .http
        .get(format!("{}/api/v1/agent{path}", stack.url()));
    request
        .header("authorization", key)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap()
}

pub(crate) async fn post(stack: &Stack, key: &str, path: &str, body: &Value) {
    let request = stack
        .http
        .post(format!("{}/api/v1/agent{path}", stack.url()));
    let answer = request
        .header("authorization", key)
        .json(body)
        .send()
        .await
        .unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
}

/// Creates a key and returns it as the value of `Authorization`. It has all scopes unless the arguments name some.
pub(crate) async fn bearer(stack: &Stack, args: &[&str]) -> String {
    let may: &[&str] = if args.contains(&"--scope") {
        &[]
    } else {
        &["--scope", "read,write,approve,calls"]
    };
    format!("Bearer {}", create(stack, &[args, may].concat()).await)
}

#[tokio::test]
async fn what_is_somebody_elses_does_not_exist() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Yes.").held()).await).await;
    stack.configure(AUTH);
    let ann = bearer(&stack, &["--tenant", "acme", "--owner", "ann"]).await;
    let bob = bearer(&stack, &["--tenant", "acme", "--owner", "bob"]).await;
    let others = [
        bearer(&stack, &["--tenant", "other", "--owner", "ann"]).await,
        bearer(&stack, &["--tenant", "other"]).await,
    ];
    let _running = stack.start().await;
    // A turn runs and a message waits. If a stranger's request had an effect, both would not end as they do below.
    post(
        &stack,
        &ann,
        "/conversations",
        &json!({"id": THEIRS, "title": "secret"}),
    )
    .await;
    for content in ["one", "two"] {
        post(
            &stack,
            &ann,
            &format!("/conversations/{THEIRS}/messages"),
            &json!({"content": content}),
        )
        .await;
    }
    stack.asked(1).await;
    let before = seen(&stack, &ann).await;
    assert_eq!(before[3]["is_running"], true, "{before:#?}");

    for operation in operations() {
        // In another tenant the id is free: nobody is refused to use it there (`same_ids.rs`).
        let is_free = matches!(operation.rule, Rule::InBody("id" | "conversation_id", ..));
        let others = others.iter().filter(|_| !is_free);
        for stranger in others.chain([&bob]) {
            operation.shows_nothing_to(&stack, stranger).await;
            assert_eq!(
                seen(&stack, &ann).await,
                before,
                "{} changed something",
                operation.name
            );
        }
    }
    assert_eq!(
        stack.model.requests().len(),
        1,
        "a stranger reached the engine"
    );
    stack.model.release();
    let events = wait::until("both turns have ended", || async {
        let events =
            get(&stack, &ann, &format!("/conversations/{THEIRS}/events")).await["events"].take();
        (types(events.as_array().unwrap())
            .matches(" complete")
            .count()
            == 2)
            .then_some(events)
    })
    .await;
    let turn = "user_message assistant_message complete";
    assert_eq!(types(events.as_array().unwrap()), format!("{turn} {turn}"));
}

/// The result exists, so that only the owner can be the reason for a 404.
#[tokio::test]
async fn a_tools_result_does_not_exist_for_another_owner() {
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("I count.").call("calculate", &json!({"expression": "6 * 7"})),
        _ => Reply::text("42."),
    };
    let stack = Stack::new(Model::start(script).await).await;
    stack.configure(AUTH);
    let ann = bearer(&stack, &["--tenant", "acme", "--owner", "ann"]).await;
    let everyone = bearer(&stack, &["--tenant", "acme"]).await;
    let strangers = [
        bearer(&stack, &["--tenant", "acme", "--owner", "bob"]).await,
        bearer(&stack, &["--tenant", "other", "--owner", "ann"]).await,
    ];
    let _running = stack.start().await;
    let path = "/conversations/counted";
    post(&stack, &ann, "/conversations", &json!({"id": "counted"})).await;
    let message = json!({"content": "What is 6 times 7?"});
    post(&stack, &ann, &format!("{path}/messages"), &message).await;
    let execution_id = wait::until("the tool has ended", || async {
        let events = get(&stack, &ann, &format!("{path}/events")).await["events"].take();
        let observed = events
            .as_array()
            .unwrap()
            .iter()
            .find(|event| event["event_type"] == "observe")?;
        Some(
            observed["event_data"]["execution_id"]
                .as_str()
                .unwrap()
                .to_owned(),
        )
    })
    .await;
    let result = format!("{path}/tool-executions/{execution_id}/result");
    for key in [&ann, &everyone] {
        let slice = get(&stack, key, &result).await;
        assert!(slice["text"].as_str().unwrap().contains("42"), "{slice}");
    }
    for stranger in &strangers {
        let problem = get(&stack, stranger, &result).await;
        assert_eq!(
            (&problem["status"], &problem["code"]),
            (&json!(404), &json!("conversation_not_found")),
            "{problem}"
        );
    }
}

/// The same requests succeed on a conversation of one's own. So the requests above fail because of the owner, and for
/// no other reason.
#[tokio::test]
async fn what_is_ones_own_can_be_reached() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Yes.")).await).await;
    stack.configure(AUTH);
    let ann = bearer(&stack, &["--tenant", "acme", "--owner", "ann"]).await;
    let everyone = bearer(&stack, &["--tenant", "acme"]).await;
    let _running = stack.start().await;
    let in_path = operations()
        .into_iter()
        .filter(|operation| matches!(operation.rule, Rule::InPath));
    for (number, operation) in in_path.enumerate() {
        for key in [&ann, &everyone] {
            let id = format!("own-{number}");
            post(&stack, &ann, "/conversations", &json!({"id": id})).await;
            let answer = operation.ask(&stack, Some(key), &id).await;
            if answer.status().is_success() {
                continue;
            }
            // A conversation without a turn has nothing to resume or retry, no agent execution and no tool execution.
            let problem: Value = answer.json().await.unwrap();
            let code = problem["code"].as_str().unwrap();
            let none = [
                "no_checkpoint",
                "not_retryable",
                "agent_execution_not_found",
                "execution_not_found",
            ];
            assert!(none.contains(&code), "{}: {problem}", operation.name);
        }
    }
}

#[tokio::test]
async fn nobody_comes_in_without_a_credential_that_holds() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Yes.")).await).await;
    stack.configure(AUTH);
    let valid = bearer(&stack, &["--tenant", "acme"]).await;
    let expired = bearer(&stack, &["--tenant", "acme", "--expires", "1ms"]).await;
    let revoked = bearer(&stack, &["--tenant", "acme"]).await;
    succeed(
        &stack,
        &["keys", "revoke", revoked.split('_').nth(1).unwrap()],
    )
    .await;
    let _gateway = stack.gateway().await;
    let forged = format!("{valid}0");
    let without_scheme = valid.trim_start_matches("Bearer ");
    let refused = [
        &expired,
        &revoked,
        &forged,
        without_scheme,
        "Bearer",
        "Bearer evk_1",
        "Basic YTpi",
        "Bearer a.b.c",
    ];
    let rows = stack.rows().await;
    for operation in operations() {
        if let Rule::Open(status) = operation.rule {
            let answer = operation.ask(&stack, None, "").await;
            assert_eq!(answer.status(), status, "{}", operation.name);
            continue;
        }
        for authorization in [None].into_iter().chain(refused.map(Some)) {
            operation
                .is_refused(&stack, authorization, 401, "unauthenticated")
                .await;
        }
    }
    assert_eq!(stack.rows().await, rows);
    assert_eq!(
        get(&stack, &valid, "/conversations").await["conversations"],
        json!([]),
        "the key itself holds"
    );
}

#[tokio::test]
async fn a_credential_does_only_what_it_may() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Yes.")).await).await;
    stack.configure(AUTH);
    let reader = bearer(&stack, &["--tenant", "acme", "--scope", "read"]).await;
    let writer = bearer(&stack, &["--tenant", "acme", "--scope", "write"]).await;
    let _gateway = stack.gateway().await;
    for operation in operations() {
        if matches!(operation.rule, Rule::OfCaller | Rule::Open(_)) {
            continue;
        }
        let other = if operation.method == "GET" {
            &writer
        } else {
            &reader
        };
        operation
            .is_refused(&stack, Some(other), 403, "insufficient_scope")
            .await;
    }
}
