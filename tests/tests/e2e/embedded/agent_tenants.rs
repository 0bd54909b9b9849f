//! An agent that is for some tenants does not exist for the others, whoever asks for it: a client, another agent, or
//! somebody with the CLI of Temporal.

use everturn_client::GatewayClient;
use everturn_proto::ConversationName;
use everturn_tests::{
    events::{data, error},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

use crate::embedded::{
    callers::ended,
    keys::{AUTH, create},
};

/// What only the agent of `acme` says: its instructions are in each of its requests.
const CONFIDENTIAL: &str = "Acme sells at 7.";

async fn stack() -> Stack {
    let model = Model::start(|request: &Request| match request.last("user").as_str() {
        "delegate" if request.results_since_user() == 0 => {
            Reply::text("").call("delegate", &json!({"agent": "clerk", "task": "Tell all."}))
        }
        _ => Reply::text("Done."),
    });
    let stack = Stack::with_agent(model.await, "delegates = [\"clerk\"]\n").await;
    stack.configure(&format!(
        "{AUTH}\n[agents.clerk]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\
         instructions = \"{CONFIDENTIAL}\"\ntenants = [\"acme\"]\n\
         [worker]\nwait_for_peer = \"0s\"\n"
    ));
    stack
}

fn was_asked(stack: &Stack) -> bool {
    let requests = stack.model.requests();
    requests
        .iter()
        .any(|it| it.body.to_string().contains(CONFIDENTIAL))
}

/// Creates a conversation as somebody, and returns status and body of the answer.
async fn created(stack: &Stack, key: &str, body: &Value) -> (u16, Value) {
    let url = format!("{}/api/v1/agent/conversations", stack.url());
    let request = reqwest::Client::new().post(url).bearer_auth(key).json(body);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn an_agent_of_another_tenant_does_not_exist() {
    let stack = stack().await;
    let _running = stack.start().await;
    let acme = create(&stack, &["--tenant", "acme"]).await;
    let globex = create(&stack, &["--tenant", "globex"]).await;

    let (status, problem) = created(&stack, &globex, &json!({"agent": "clerk"})).await;
    assert_eq!((status, &problem["code"]), (400, &json!("unknown_agent")));
    assert!(!problem.to_string().contains("clerk"), "{problem}");
    let unknown = created(&stack, &globex, &json!({"agent": "nobody"})).await;
    assert_eq!(
        unknown.1["detail"], problem["detail"],
        "it is like any other name"
    );
    let (status, conversation) = created(&stack, &acme, &json!({"agent": "clerk"})).await;
    assert_eq!(status, 201, "{conversation}");
    let id = conversation["id"].as_str().unwrap();
    let client = GatewayClient::with_token(&stack.url(), Some(&acme)).unwrap();
    client.submit(id, "hello", None).await.unwrap();
    let events = ended(&stack, &acme, id).await;
    assert_eq!(events.last().unwrap()["event_type"], "complete");
    assert!(was_asked(&stack), "it is there for its own tenant");
}

#[tokio::test]
async fn another_agent_cannot_reach_it() {
    let stack = stack().await;
    let _running = stack.start().await;
    let globex = create(&stack, &["--tenant", "globex"]).await;
    let client = GatewayClient::with_token(&stack.url(), Some(&globex)).unwrap();
    let id = client.create_conversation(None).await.unwrap();
    client.submit(&id, "delegate", None).await.unwrap();
    let events = ended(&stack, &globex, &id).await;
    assert!(
        error(&events, "delegate").contains("not configured"),
        "{events:#?}"
    );
    assert!(!was_asked(&stack));
}

/// A signal does not pass a gateway. Whoever sends it may name any agent, and any tenant.
#[tokio::test]
async fn a_signal_cannot_reach_it() {
    let stack = stack().await;
    let _running = stack.start().await;
    let globex = create(&stack, &["--tenant", "globex"]).await;
    let client = GatewayClient::with_token(&stack.url(), Some(&globex)).unwrap();
    let name = client.create_conversation(None).await.unwrap();
    // The conversation of the database has the tenant in its id. A run that claims another one begins no turn.
    let id = ConversationName {
        tenant_id: "globex",
        name: &name,
    }
    .id();
    for claimed in ["acme", "globex"] {
        let message = json!({"content": "hello", "message_id": format!("m-{claimed}")});
        let input = json!({
            "conversation_id": id, "agent": "clerk", "tenant_id": claimed, "message": message,
        });
        stack.start_by_hand(&id, &input).await;
        stack.workflow_status(&id, "FAILED").await;
    }
    let events = ended(&stack, &globex, &name).await;
    let errors = data(&events, "error");
    assert_eq!(errors.len(), 1, "{events:#?}");
    for error in errors {
        assert_eq!(error["code"], "unknown_agent", "{error}");
        let others = error["message"]
            .as_str()
            .unwrap()
            .replace("no agent `clerk`", "");
        assert!(!others.contains("clerk"), "{error}");
    }
    assert!(!was_asked(&stack));
}
