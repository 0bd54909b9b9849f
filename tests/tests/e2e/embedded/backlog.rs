//! The work that waits, in the metrics of a gateway.

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    temporal::free_port,
    wait,
};
use serde_json::json;

use super::health::Probes;

const AGENT: &str = r#"tools = [{ name = "test_read", approval = "always" }]"#;

#[tokio::test]
async fn a_gateway_counts_calls_that_wait_for_approvals() {
    let model = Model::start(|_: &Request| Reply::text("").call("test_read", &json!({}))).await;
    let stack = Stack::with_agent(model, AGENT).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.saw(&conversation, "approval_requested").await;
    // A gateway counts at its start, and every 15 s from then on.
    let probes = Probes::free();
    let listen = format!("127.0.0.1:{}", free_port());
    let _gateway = probes.spawn(&stack, &["gateway", "--listen", &listen], &[]);
    probes.says("/readyz", 200).await;
    wait::until("the waiting call is counted", || async {
        let text = probes.text().await?;
        let shows = |series: &str| text.lines().any(|line| line.starts_with(series));
        // A database of several tests has the calls of further tests, too.
        let is_shown = shows("everturn_approvals_waiting{agent=\"default\"} ")
            && !shows("everturn_approvals_waiting{agent=\"default\"} 0")
            && shows("everturn_approvals_oldest_seconds{agent=\"other\"} 0")
            && shows("everturn_reconciler_overdue_seconds ")
            && shows("everturn_reload_refused 0");
        is_shown.then_some(())
    })
    .await;
}
