//! Records the history of a turn whose context is compacted.

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;

use super::record::turn;

/// Goes on until its context is compacted.
fn script(request: &Request) -> Reply {
    let sent = request.body["messages"].to_string();
    if sent.contains("Write a summary") {
        Reply::text("All parts were sound.")
    } else if sent.contains("All parts were sound.") {
        Reply::text("Done.")
    } else {
        Reply::text("One more.").call("test_read", &json!({"output_bytes": 1000}))
    }
}

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_a_compaction_when_asked() {
    let agent = "tools = [\"test_read\"]\ncontext_window = 2000\n";
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    let _running = stack.start().await;
    turn(&stack, "compacted", "look at all parts").await;
}
