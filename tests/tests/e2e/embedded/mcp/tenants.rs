//! Whose a connection to an MCP server is: a server that keeps state has one for each tenant, with the tenant's own secret, and
//! some servers are for some tenants and agents alone.

use std::{fs, path::Path};

use everturn_tests::{
    events::{observe, result},
    mcp,
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::json;

use super::offered;
use crate::embedded::{
    callers::turn_of,
    keys::{AUTH, create},
};

/// The table of the server with state; processes write their ids to `notes.pid`.
fn notes(stack: &Stack, more: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/embedded/mcp/notes.py");
    let pids = stack.path("notes.pid").display().to_string();
    let command = [
        "sh",
        "-c",
        "echo $$ >>\"$0\"; exec \"$1\" \"$2\"",
        &pids,
        &mcp::python("python").display().to_string(),
        &script.display().to_string(),
    ];
    mcp::command("notes", &command, more)
}

/// A stack of an agent `clerk`, whose model keeps a note that names its turn's user, and recalls all notes.
async fn stack(more: &str) -> Stack {
    let model = Model::start(|request: &Request| {
        let is_told = !offered(request).is_empty();
        match request.results_since_user() {
            0 if is_told => Reply::text("").call("notes__note", &json!({"text": "a secret"})),
            1 => Reply::text("").call("notes__recall", &json!({})),
            _ => Reply::text("Done."),
        }
    });
    let stack = Stack::new(model.await).await;
    let agent = |name: &str| {
        format!(
            "[agents.{name}]\nprovider = \"scripted\"\nmodel = \"scripted\"\ntools = [\"notes__*\"]\n"
        )
    };
    let table = notes(&stack, more);
    stack.configure(&format!(
        "{AUTH}\n{}{}{table}",
        agent("clerk"),
        agent("guest")
    ));
    for tenant in ["acme", "globex"] {
        fs::create_dir_all(stack.path(tenant)).unwrap();
        fs::write(
            stack.path(tenant).join("token"),
            format!("token-of-{tenant}\n"),
        )
        .unwrap();
    }
    stack
}

const PER_TENANT: &str = "per = \"tenant\"\nenv_file = { NOTES_TOKEN = \"{tenant}/token\" }\n";

/// Returns how many processes of the server run.
fn running(stack: &Stack) -> usize {
    let pids = fs::read_to_string(stack.path("notes.pid")).unwrap_or_default();
    let runs = |pid: &&str| Path::new("/proc").join(pid).is_dir();
    pids.lines().filter(runs).count()
}

/// The notes that a new turn of this tenant recalls.
async fn recalled(stack: &Stack, tenant: &str) -> String {
    let key = create(stack, &["--tenant", tenant]).await;
    let (_, events) = turn_of(stack, &key, "clerk").await;
    let recalled = result(&events, "notes__recall");
    recalled
        .as_str()
        .map_or_else(|| recalled.to_string(), str::to_owned)
}

#[tokio::test]
async fn a_tenant_does_not_see_the_state_of_another_one() {
    let stack = stack(PER_TENANT).await;
    let _running = stack.start_with_one_worker().await;
    let acme = recalled(&stack, "acme").await;
    assert!(acme.contains("acme;emca-fo-nekot;a secret"), "{acme}");
    let globex = recalled(&stack, "globex").await;
    assert_eq!(globex.matches("a secret").count(), 1, "{globex}");
    assert!(globex.contains("globex;xebolg-fo-nekot"), "{globex}");
    // The connection of a tenant is kept, with what the server remembers.
    let again = recalled(&stack, "acme").await;
    assert_eq!(again.matches("a secret").count(), 2, "{again}");
    assert_eq!(running(&stack), 2);
}

#[tokio::test]
async fn one_connection_for_all_is_what_it_says() {
    let stack = stack("").await;
    let _running = stack.start_with_one_worker().await;
    recalled(&stack, "acme").await;
    let globex = recalled(&stack, "globex").await;
    assert!(globex.contains("everybody;no token"), "{globex}");
    assert_eq!(globex.matches("a secret").count(), 2, "{globex}");
}

#[tokio::test]
async fn connections_of_tenants_are_bounded_and_end_when_nobody_uses_them() {
    let stack = stack("per = \"tenant\"\nmax_connections = 1\nkeep_idle = \"2s\"\n").await;
    let _running = stack.start_with_one_worker().await;
    for tenant in ["acme", "globex"] {
        assert!(recalled(&stack, tenant).await.contains(tenant));
    }
    // The first one gives way to the second, and the second one ends in its turn.
    wait::until("no server runs", || async {
        (running(&stack) == 0).then_some(())
    })
    .await;
    let again = recalled(&stack, "acme").await;
    assert_eq!(again.matches("a secret").count(), 1, "{again}");
}

#[tokio::test]
async fn a_server_is_for_the_tenants_and_agents_that_it_names() {
    let stack = stack("tenants = [\"acme\"]\nagents = [\"clerk\"]\n").await;
    let _running = stack.start_with_one_worker().await;
    let acme = create(&stack, &["--tenant", "acme"]).await;
    let globex = create(&stack, &["--tenant", "globex"]).await;
    turn_of(&stack, &globex, "clerk").await;
    turn_of(&stack, &acme, "guest").await;
    let requests = stack.model.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert!(offered(request).is_empty(), "{:?}", offered(request));
    }
    assert_eq!(running(&stack), 0, "it was not even started");
    let (_, events) = turn_of(&stack, &acme, "clerk").await;
    result(&events, "notes__recall");
}

/// A model may name a tool that it was not offered.
#[tokio::test]
async fn a_call_for_another_tenant_does_not_reach_the_server() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("").call("notes__recall", &json!({})),
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    let table = notes(&stack, "tenants = [\"acme\"]\n");
    stack.configure(&format!(
        "{AUTH}\n[agents.clerk]\nprovider = \"scripted\"\nmodel = \"scripted\"\ntools = [\"notes__*\"]\n{table}"
    ));
    let _running = stack.start_with_one_worker().await;
    let globex = create(&stack, &["--tenant", "globex"]).await;
    let (_, events) = turn_of(&stack, &globex, "clerk").await;
    assert_eq!(observe(&events, "notes__recall")["is_error"], true);
    assert_eq!(running(&stack), 0);
}
