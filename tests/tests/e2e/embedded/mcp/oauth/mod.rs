//! Servers that want a token of OAuth: what an agent's tools get, when tokens end and are taken back, and what an
//! attacker gets.

pub(crate) mod authority;
mod consents;
mod hostile;

use std::{fs, time::Duration};

use everturn_tests::{
    events::{data, error, result},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

use self::authority::{Authority, SCOPE};
use super::calling;
use crate::embedded::{
    callers::turn_of,
    keys::{AUTH, create},
};

const ID: &str = "everturn";
/// It has signs that a header and a form write in another way.
const SECRET: &str = "s3cret:of+the/client";

/// The agent and the servers of a test.
fn config(servers: &[&str], allowed: &[String], tables: &str) -> String {
    let tools: Vec<_> = servers.iter().map(|name| format!("{name}__*")).collect();
    format!(
        "[agents.clerk]\nprovider = \"scripted\"\nmodel = \"scripted\"\ntools = {tools:?}\n\
         [egress]\nallow = {allowed:?}\n{tables}"
    )
}

/// A stack with one server, whose secret is in the file `secret`.
async fn stack(authority: &Authority, model: Model) -> Stack {
    let stack = Stack::new(model).await;
    fs::write(stack.path("secret"), format!("{SECRET}\n")).unwrap();
    let client = format!("client_id = \"{ID}\"\nclient_secret_file = \"secret\"");
    let tables = authority.tables("notes", "", &client);
    stack.configure(&config(&["notes"], &[authority.allowed()], &tables));
    stack
}

/// The events of a new turn of the agent.
async fn turn(stack: &Stack) -> Vec<Value> {
    let client = stack.client();
    let conversation = client.create_conversation(Some("clerk")).await.unwrap();
    client.submit(&conversation, "go", None).await.unwrap();
    stack.ended(&conversation, 1).await
}

fn one_call() -> Vec<(&'static str, Value)> {
    vec![("notes__whoami", json!({}))]
}

/// A model that calls the tool eight times at once.
async fn eight_calls() -> Model {
    Model::start(|request: &Request| match request.results_since_user() {
        0 => (0..8).fold(Reply::text(""), |reply, _| {
            reply.call("notes__whoami", &json!({}))
        }),
        _ => Reply::text("Done."),
    })
    .await
}

/// Checks that all calls of the turn have got their result.
fn assert_all(events: &[Value], calls: usize) {
    assert_calls(events, calls, ID);
}

/// Checks that all calls of the turn have got this result.
fn assert_calls(events: &[Value], calls: usize, expected: &str) {
    let observed = data(events, "observe");
    assert_eq!(observed.len(), calls, "{events:#?}");
    for observe in observed {
        assert_eq!(observe["result"], expected, "{observe:#?}");
    }
}

#[tokio::test]
async fn a_tool_is_called_without_a_token_in_the_configuration() {
    for is_old in [false, true] {
        let authority = Authority::start(&[(ID, SECRET)]).await;
        authority.say(|says| says.is_old = is_old);
        let stack = stack(&authority, calling(one_call()).await).await;
        let _running = stack.start_with_one_worker().await;
        for _ in 0..2 {
            assert_eq!(result(&turn(&stack).await, "notes__whoami"), ID);
        }
        let tokens = authority.tokens();
        assert_eq!(tokens.len(), 1, "one token is for all requests");
        let form = &tokens[0].form;
        assert_eq!(form["resource"], authority.url());
        // The server that does not say what it needs has all that it knows asked for.
        let scopes = if is_old {
            "notes:read notes:write"
        } else {
            SCOPE
        };
        assert_eq!(form["scope"], scopes);
        assert_eq!(form.contains_key("client_secret"), is_old);
        assert_eq!(authority.refused(), 1, "the first request had no token");
    }
}

#[tokio::test]
async fn a_token_endpoint_may_be_named_in_place_of_the_issuer() {
    let authority = Authority::start(&[(ID, SECRET)]).await;
    let stack = Stack::new(calling(one_call()).await).await;
    fs::write(stack.path("secret"), SECRET).unwrap();
    let tables = format!(
        "[mcp.notes]\nurl = \"{}\"\n[mcp.notes.oauth]\ntoken_url = \"{}/token\"\nclient_id = \"{ID}\"\n\
         client_secret_file = \"secret\"\nscopes = [\"notes:read\"]\n",
        authority.url(),
        authority.issuer()
    );
    stack.configure(&config(&["notes"], &[authority.allowed()], &tables));
    let _running = stack.start_with_one_worker().await;
    assert_eq!(result(&turn(&stack).await, "notes__whoami"), ID);
    assert_eq!(authority.asked(), ["/token"], "nothing was discovered");
    assert_eq!(authority.refused(), 0);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let authority = Authority::start(&[(ID, SECRET)]).await;
    authority.tokens_hold(Duration::from_secs(10));
    let stack = stack(&authority, eight_calls().await).await;
    let _running = stack.start_with_one_worker().await;
    assert_all(&turn(&stack).await, 8);
    wait::until("the token has ended", || async {
        authority.has_ended().then_some(())
    })
    .await;
    authority.tokens_hold(Duration::from_secs(3600));
    let given = authority.tokens().len();
    assert_all(&turn(&stack).await, 8);
    assert_eq!(authority.tokens().len(), given + 1, "one for all callers");
    assert_eq!(authority.calls().len(), 16);
    assert_eq!(authority.refused(), 1, "no token came too late");
}

#[tokio::test]
async fn a_token_that_was_taken_back_is_renewed_once() {
    let authority = Authority::start(&[(ID, SECRET)]).await;
    let stack = stack(&authority, eight_calls().await).await;
    let _running = stack.start_with_one_worker().await;
    assert_all(&turn(&stack).await, 8);
    authority.revoke();
    assert_all(&turn(&stack).await, 8);
    assert_eq!(authority.tokens().len(), 2, "one for all that were refused");
    assert_eq!(authority.calls().len(), 16, "each call ran once");
}

/// A server that takes no token, however new it is, makes nobody ask without an end.
#[tokio::test]
async fn a_server_that_takes_no_token_ends_in_a_clear_error() {
    let authority = Authority::start(&[(ID, SECRET)]).await;
    authority.say(|says| says.takes_nothing = true);
    let stack = stack(&authority, calling(one_call()).await).await;
    let _running = stack.start_with_one_worker().await;
    let events = turn(&stack).await;
    let error = error(&events, "notes__whoami");
    assert!(error.contains("mcp_token_refused"), "{error}");
    let given = authority.tokens().len();
    assert!((1..=6).contains(&given), "{given}");
}

#[tokio::test]
async fn a_wrong_secret_is_a_clear_error_until_it_is_the_right_one() {
    let authority = Authority::start(&[(ID, SECRET)]).await;
    let stack = stack(&authority, calling(one_call()).await).await;
    fs::write(stack.path("secret"), "another-secret-that-nobody-knows").unwrap();
    let _running = stack.start_with_one_worker().await;
    let events = turn(&stack).await;
    let error = error(&events, "notes__whoami");
    assert!(
        error.contains("does not take the client (mcp_client_refused)"),
        "{error}"
    );
    assert_eq!(events.last().unwrap()["event_type"], "complete");
    stack
        .logged("worker", "Check the client's id and secret")
        .await;
    let log = fs::read_to_string(stack.path("worker.log")).unwrap();
    assert!(!log.contains("another-secret"), "{log}");
    // The file is read for each token, so nothing has to be restarted.
    fs::write(stack.path("secret"), SECRET).unwrap();
    wait::until("the server is used", || async {
        let events = turn(&stack).await;
        let observed = data(&events, "observe")[0];
        (observed["is_error"] == false).then_some(())
    })
    .await;
}

#[tokio::test]
async fn each_tenant_has_its_own_client_and_its_own_token() {
    let clients = [
        ("of-acme", "secret-of-acme"),
        ("of-globex", "secret-of-globex"),
    ];
    let authority = Authority::start(&clients).await;
    let stack = Stack::new(calling(one_call()).await).await;
    for tenant in ["acme", "globex"] {
        fs::create_dir_all(stack.path(tenant)).unwrap();
        fs::write(stack.path(tenant).join("id"), format!("of-{tenant}\n")).unwrap();
        let secret = format!("secret-of-{tenant}");
        fs::write(stack.path(tenant).join("secret"), secret).unwrap();
    }
    let client = "client_id_file = \"{tenant}/id\"\nclient_secret_file = \"{tenant}/secret\"";
    let tables = authority.tables("notes", "per = \"tenant\"", client);
    let config = config(&["notes"], &[authority.allowed()], &tables);
    stack.configure(&format!("{AUTH}\n{config}"));
    let _running = stack.start_with_one_worker().await;
    for tenant in ["acme", "globex", "acme"] {
        let key = create(&stack, &["--tenant", tenant]).await;
        let (_, events) = turn_of(&stack, &key, "clerk").await;
        assert_eq!(result(&events, "notes__whoami"), &format!("of-{tenant}"));
    }
    let given: Vec<_> = authority.tokens().into_iter().map(|it| it.client).collect();
    assert_eq!(given, ["of-acme", "of-globex"]);
    assert_eq!(authority.calls(), ["of-acme", "of-globex", "of-acme"]);
    // A tenant without a secret has no token of another one.
    let key = create(&stack, &["--tenant", "initech"]).await;
    let (_, events) = turn_of(&stack, &key, "clerk").await;
    let error = error(&events, "notes__whoami");
    assert!(error.contains("mcp_secret_unreadable"), "{error}");
}
