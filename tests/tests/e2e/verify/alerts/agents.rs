//! Alerts on agents: money, approvals that wait, files that a process refuses; and late checks of stalled turns.

use everturn_tests::model::{CallUsage, Model, Reply, Request};
use serde_json::json;

use super::watched::Watched;

/// An agent with an owner, whose model costs 2 USD for a million tokens.
const CLERK: &str = r##"
[models."scripted/scripted"]
input = 2
output = 2
[agents.clerk]
provider = "scripted"
model = "scripted"
tools = [{ name = "test_read", approval = "always" }]
owner = "Orders"
contact = "#orders"
"##;

/// The owner in `CLERK`.
const OWNER: &str = "Orders";

fn scripted(request: &Request) -> Reply {
    let many = CallUsage {
        input_tokens: 10_000_000,
        output_tokens: 0,
        cached_tokens: 0,
        reasoning_tokens: 0,
    };
    match request.last("user").as_str() {
        "a dear question" => Reply::text("A dear answer.").taking(many),
        "a tool" => Reply::text("").call("test_read", &json!({})),
        _ => Reply::text("Hello."),
    }
}

#[tokio::test]
async fn an_agent_spends() {
    let mut watched = Watched::of(Model::start(scripted).await, CLERK, 1).await;
    watched.is_well().await;
    // 20 USD for each turn.
    watched.turns_of(Some("clerk"), "a dear question", 5).await;
    let cost = ["everturn_cost_usd_total", "clerk"];
    watched.counted(&cost, 99.0).await;
    watched.minutes(8).await;
    let fires = watched.only_fires(&["EverturnAgentSpends"]).await;
    fires[0].has("agent", "clerk").has("owner", OWNER);
}

#[tokio::test]
async fn an_approval_waits() {
    let mut watched = Watched::of(Model::start(scripted).await, CLERK, 1).await;
    watched.is_well().await;
    let client = watched.stack.client();
    let conversation = client.create_conversation(Some("clerk")).await.unwrap();
    client.submit(&conversation, "a tool", None).await.unwrap();
    watched.stack.saw(&conversation, "approval_requested").await;
    let sqlite = "UPDATE tool_execution_records SET created_at = '2026-01-01T00:00:00.000000Z'";
    let postgres = "UPDATE tool_execution_records SET created_at = '2026-01-01'";
    watched.stack.run_sql(sqlite, postgres).await;
    let waits = ["everturn_approvals_oldest_seconds", "clerk"];
    watched.counted(&waits, 14_401.0).await;
    watched.minutes(8).await;
    let fires = watched.only_fires(&["EverturnApprovalsWait"]).await;
    fires[0].has("agent", "clerk").has("owner", OWNER);
}

#[tokio::test]
async fn changed_agents_are_refused() {
    let tables = "[reload]\ninterval = \"100ms\"\n";
    let mut watched = Watched::of(Model::start(scripted).await, tables, 1).await;
    watched.is_well().await;
    watched.stack.configure("[agents.clerk]\nmodle = \"m\"\n");
    watched.counted(&["everturn_reload_refused"], 2.0).await;
    watched.minutes(8).await;
    watched.only_fires(&["EverturnAgentsRefused"]).await;
}

#[tokio::test]
async fn checks_are_late() {
    let tables = "[reconciler]\nevery = \"1h\"\n";
    let mut watched = Watched::of(Model::start(scripted).await, tables, 1).await;
    watched.is_well().await;
    let insert = "INSERT INTO turn_checks (conversation_id, due_at) VALUES ('c', ";
    let sqlite = format!("{insert}'2026-01-01T00:00:00.000000Z')");
    let postgres = format!("{insert}'2026-01-01')");
    watched.stack.run_sql(&sqlite, &postgres).await;
    let overdue = ["everturn_reconciler_overdue_seconds"];
    watched.counted(&overdue, 301.0).await;
    watched.minutes(14).await;
    watched.only_fires(&["EverturnChecksBehind"]).await;
}
