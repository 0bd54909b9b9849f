//! Records the history of a turn whose LLM calls and tools are done by workers of their own.

use everturn_tests::{model::Model, stack::Stack};

use super::record::{script, turn};

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_pools_when_asked() {
    let stack = Stack::new(Model::start(script).await).await;
    let _gateway = stack.gateway().await;
    let pool = |work| stack.spawn(&["worker", "--only", work], work, &[]);
    let _pools = ["workflows", "models", "tools"].map(pool);
    turn(&stack, "pools", "use two tools").await;
}
